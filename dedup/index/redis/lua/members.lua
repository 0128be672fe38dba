-- members(KEYS = {bucket, bucket, ...},
--         ARGV = {prefix of pages, then per bucket: where in a record its key begins or -1, first byte, last byte})
--   -> {per bucket: the entries between, 28 bytes each: key and number as they are, scope (8) and key (8) of the page},
--       {place of a bucket, number that is no page's, ...}
-- What the tables say beside what the records say, both of one moment.  Before it stands the layout of a record.
local ENTRY = 12
local NOBODY = 4294967295
local answer, strays = {}, {}
for i = 1, #KEYS do
  local at = tonumber(ARGV[3 * i - 1])
  local length = math.max(SCOPE_END, at + BAND)
  local found = redis.pcall('GETRANGE', KEYS[i], ARGV[3 * i], ARGV[3 * i + 1])
  local members = {}
  for first = 1, type(found) == 'string' and #found - ENTRY + 1 or 0, ENTRY do
    local number = struct.unpack('<I4', found, first + 8)
    local head = number ~= NOBODY and redis.pcall('GETRANGE', ARGV[1] .. number, 0, length - 1)
    if type(head) == 'string' and #head == length then
      local key = at < 0 and head:sub(1, BAND) or head:sub(at + 1, at + BAND)
      members[#members + 1] = found:sub(first, first + ENTRY - 1) .. head:sub(SCOPE_AT, SCOPE_END) .. key
    elseif head then
      strays[#strays + 1] = i
      strays[#strays + 1] = number
    end
  end
  answer[i] = table.concat(members)
end
return {answer, strays}
