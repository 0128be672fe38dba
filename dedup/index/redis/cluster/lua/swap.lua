-- swap(KEYS = {page}, ARGV = {head of the record that is expected or '', what is to be there or '' for nothing})
--   -> 1 if it is there now | what is there instead, in a list
-- A record begins with its head, which no other record of the page has (dedup/index/redis/cluster/protocol.py); so a
-- call that is repeated, as its answer was lost, is told that it was done.
local expected, wanted = ARGV[1], ARGV[2]
local there = redis.call('GET', KEYS[1]) or ''
local head = there:sub(1, HEAD)
if there == wanted or (head ~= '' and head == wanted:sub(1, HEAD)) then return 1 end
if head ~= expected then return {there} end
if wanted == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], wanted) end
return 1
