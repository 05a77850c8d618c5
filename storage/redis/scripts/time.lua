-- Replies with the time of the server that holds the partition.
return redis.call('TIME')
