-- Refuses a connection on which pg's texts, which are UTF-8, would be stored garbled.
CREATE FUNCTION check_encoding() RETURNS void
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $function$
BEGIN
  IF current_setting('client_encoding') NOT IN ('UTF8', 'SQL_ASCII') THEN
    RAISE 'client_encoding is not UTF8' USING ERRCODE = '22021';
  END IF;
END
$function$;
