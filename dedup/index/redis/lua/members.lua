-- members(KEYS = {bucket, bucket, ...},
--         ARGV = {prefix of pages, then per bucket: where in a record its key begins, first member, last member})
--   -> {per bucket: what its members are, 32 bytes each: number (8, big-endian), score (8, a double),
--       scope (8) and key (8) of the page}, {place of a bucket, member that is no page, ...}
-- What the tables say beside what the records say, both of one moment.  Before it stands the layout of a record.
local answer, strays = {}, {}
for i = 1, #KEYS do
  local at = tonumber(ARGV[3 * i - 1])
  local length = math.max(SCOPE_END, at + BAND)
  local found = redis.pcall('ZRANGE', KEYS[i], ARGV[3 * i], ARGV[3 * i + 1], 'WITHSCORES')
  local members = {}
  for j = 1, #found, 2 do
    local member = found[j]
    local number = #member <= 15 and member:match('^[1-9]%d*$')
    local head = number and redis.pcall('GETRANGE', ARGV[1] .. member, 0, length - 1)
    if type(head) == 'string' and #head == length then
      members[#members + 1] = struct.pack('>I8d', tonumber(member), tonumber(found[j + 1]))
          .. head:sub(SCOPE_AT, SCOPE_END) .. head:sub(at + 1, at + BAND)
    else
      strays[#strays + 1] = i
      strays[#strays + 1] = member
    end
  end
  answer[i] = table.concat(members)
end
return {answer, strays}
