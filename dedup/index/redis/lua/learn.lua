-- learn(KEYS = {..., hosts, table of a host},
--       ARGV = {..., prefix of tables, hash of the host, version that the caller knows, version of what is written,
--               how many tables there may be, what is written})
--   -> what is stored now, or only its version if it was written
-- What comes first: see known.lua.  Stores what was learned of a host, if nobody else has written it meanwhile.
local hosts, host = KEYS[5], KEYS[6]
local tables, name, expected, version, most = ARGV[5], ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
redis.call('ZCARD', hosts) -- only for its type
local stored = redis.call('GETRANGE', host, 0, #version - 1)
if stored == version then return answer(version) end -- an answer was lost
if stored ~= expected then return answer(redis.call('GET', host) or '') end
redis.call('SET', host, ARGV[10])
redis.call('ZADD', hosts, now, name)
while redis.call('ZCARD', hosts) > most do
  local oldest = redis.call('ZRANGEBYSCORE', hosts, '-inf', '+inf', 'LIMIT', 0, 1)[1]
  redis.call('DEL', tables .. oldest)
  redis.call('ZREM', hosts, oldest)
end
return answer(version)
