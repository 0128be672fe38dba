-- open(KEYS = {header, sequence}, ARGV = {name, value, name, value, ...}) -> {name, value, ...} as stored
-- Writes the header of a new index, in one step; of an existing one it only reads it.
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  redis.call('HSET', KEYS[1], unpack(ARGV))
  redis.call('SET', KEYS[2], 0)
end
return redis.call('HGETALL', KEYS[1])
