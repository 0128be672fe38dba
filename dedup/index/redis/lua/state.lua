-- state(KEYS = {..., bucket of a page id, bucket of a page id, ...}, ARGV = {..., prefix of pages, keys of the page ids})
--   -> the state of each page
-- What comes first: see known.lua.
local states = {}
for i = 5, #KEYS do
  local number = number_of(KEYS[i], key_at(ARGV[6], i - 5))
  states[#states + 1] = number and state_of(number, ARGV[5] .. number) or 'absent'
end
return answer(unpack(states))
