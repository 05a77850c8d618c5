-- The server's time, from the server that the partition is on.
return redis.call('TIME')
