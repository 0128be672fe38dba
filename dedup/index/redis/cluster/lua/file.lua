-- file(KEYS = {bucket, bucket, ... of one slot},
--      ARGV = {page or '', radius, how many are listed of a bucket at most,
--              then per bucket: score of the page, lowest, highest})
--   -> in how many buckets the page was not, 1 if there are more than are listed or else 0, page, page, ...
-- Files a page in buckets, and lists those there whose keys are within the radius of its own, each as often as it is met.
-- A score is what a bucket has not in common of its pages' keys (dedup/index/redis/cluster/keys.py).
local band, bxor, rshift = bit.band, bit.bxor, bit.rshift
local page, radius, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local FIRST, PER_BUCKET, WORD = 4, 3, 4294967296

local function bits(x) -- how many are set of 32
  x = x - band(rshift(x, 1), 0x55555555)
  x = band(x, 0x33333333) + band(rshift(x, 2), 0x33333333)
  return band(x + rshift(x, 4), 0x0f0f0f0f) % 255
end

local added, crowded, answer = 0, 0, {0, 0}
for i, bucket in ipairs(KEYS) do
  local at = FIRST + PER_BUCKET * (i - 1)
  local own, low, high = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if page ~= '' then added = added + redis.call('ZADD', bucket, own, page) end
  local found = redis.call('ZRANGEBYSCORE', bucket, low, high, 'WITHSCORES', 'LIMIT', 0, most + 1)
  if #found > 2 * most then -- those next to the page
    crowded = 1
    found = redis.call('ZRANGEBYSCORE', bucket, own, high, 'WITHSCORES', 'LIMIT', 0, most / 2)
    local below = redis.call('ZRANGE', bucket, '(' .. own, low, 'BYSCORE', 'REV', 'LIMIT', 0, most / 2, 'WITHSCORES')
    for j = 1, #below do found[#found + 1] = below[j] end
  end
  local own_high, own_low = math.floor(own / WORD), own % WORD
  for j = 1, #found, 2 do
    if found[j] ~= page then
      local score = tonumber(found[j + 1])
      local differing = bits(bxor(score % WORD, own_low)) + bits(bxor(math.floor(score / WORD), own_high))
      if differing <= radius then answer[#answer + 1] = found[j] end
    end
  end
end
answer[1], answer[2] = added, crowded
return answer
