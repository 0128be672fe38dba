-- leases(KEYS = {header, sequence, runs}, ARGV = {run, run, ...})
--   -> digest of the header, last number given out, clock in ms, per run: what `runs` says of it or ''
local clock = redis.call('TIME')
local answer = {
  redis.call('HGET', KEYS[1], 'digest') or '', tonumber(redis.call('GET', KEYS[2]) or -1),
  clock[1] * 1000 + math.floor(clock[2] / 1000),
}
for i = 1, #ARGV do answer[#answer + 1] = redis.call('ZSCORE', KEYS[3], ARGV[i]) or '' end
return answer
