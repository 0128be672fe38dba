-- state(KEYS = {..., page id, page id, ...}, ARGV = {..., prefix of pages}) -> the state of each page
-- What comes first: see known.lua.
local states = {}
for i = 5, #KEYS do
  local number = redis.call('GET', KEYS[i])
  states[#states + 1] = number and state_of(number, ARGV[5] .. number) or 'absent'
end
return answer(unpack(states))
