-- state(KEYS = {..., page id, page id, ...}, ARGV = {...}) -> 'done', 'pending' or 'none' for each
-- What comes first: see known.lua; the keys are described in claim.lua.  A claim of a dead run is none.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local states = {}
for i = 5, #KEYS do
  local number = redis.call('GET', KEYS[i])
  local owner = number and redis.call('HGET', pending, number)
  local lease = owner and tonumber(redis.call('ZSCORE', runs, owner) or 0)
  states[#states + 1] = not number and 'none' or not owner and 'done' or lease > now and 'pending' or 'none'
end
return answer(unpack(states))
