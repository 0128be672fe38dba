-- state(KEYS = {..., page id, page id, ...}, ARGV = {..., prefix of pages}) -> 'done', 'pending' or 'none' for each
-- What comes first: see known.lua; the keys are described in claim.lua.  A page of a dead run is none.
local states = {}
for i = 5, #KEYS do
  local number = redis.call('GET', KEYS[i])
  local owner = number and redis.call('HGET', pending, number)
  local filed_by = number and run_of(redis.call('GETRANGE', ARGV[5] .. number, 28, 43))
  if owner and (owner == run or redis.call('ZSCORE', runs, owner) and not is_dead(owner)) then
    states[#states + 1] = 'pending'
  else
    states[#states + 1] = (owner or not number or is_dead(filed_by)) and 'none' or 'done'
  end
end
return answer(unpack(states))
