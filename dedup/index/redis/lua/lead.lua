-- lead(KEYS = {master, sequence, released}, ARGV = {the node that has them, how many numbers are passed over})
-- Another node than the last one may lack what was filed last: its numbers must not be given out once more.
local before = redis.call('GET', KEYS[1])
if before == ARGV[1] or redis.call('EXISTS', KEYS[2]) == 0 then return end
redis.call('SET', KEYS[1], ARGV[1])
if before then
  for i = 2, 3 do redis.call('SET', KEYS[i], string.format('%d', (redis.call('GET', KEYS[i]) or 0) + ARGV[2])) end
end
