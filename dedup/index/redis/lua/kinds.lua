-- kinds(KEYS = {key, key, ...}, ARGV = {type that each should have})
--   -> per key: how many bytes a string has, or 1 (0: it is gone, or empty; -1: it is of another type), 1 if it will
--      expire or 0
local answer = {}
for i = 1, #KEYS do
  local kind, size = redis.call('TYPE', KEYS[i]).ok, 1
  if kind == 'none' then
    size = 0
  elseif kind ~= ARGV[i] then
    size = -1
  elseif kind == 'string' then
    size = redis.call('STRLEN', KEYS[i])
  end
  answer[2 * i - 1] = size
  answer[2 * i] = redis.call('PTTL', KEYS[i]) >= 0 and 1 or 0
end
return answer
