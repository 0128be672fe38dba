-- state(KEYS = {..., page id, page id, ...}, ARGV = {..., prefix of pages}) -> 'done', 'pending' or 'none' for each
-- What comes first: see known.lua.  A page of a dead run is 'none'.
local states = {}
for i = 5, #KEYS do
  local number = redis.call('GET', KEYS[i])
  local owner = number and redis.call('HGET', pending, number)
  local by = number and filed_by(ARGV[5] .. number)
  if owner and (owner == run or redis.call('ZSCORE', runs, owner) and not is_dead(owner)) then
    states[#states + 1] = 'pending'
  else
    states[#states + 1] = (owner or not number or is_dead(by)) and 'none' or 'done'
  end
end
return answer(unpack(states))
