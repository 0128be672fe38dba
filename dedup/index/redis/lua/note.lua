-- note(KEYS = {..., notes}, ARGV = {..., how many hosts there may be, host, what is noted of it, host, ...}) -> nothing
-- What comes first: see known.lua.  Stores what was noted of hosts.  When there are too many, all are forgotten.
if redis.call('HLEN', KEYS[5]) >= tonumber(ARGV[5]) then redis.call('DEL', KEYS[5]) end
for i = 6, #ARGV, 2 do redis.call('HSET', KEYS[5], ARGV[i], ARGV[i + 1]) end
return answer()
