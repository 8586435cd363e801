-- Lends tokens of one key, if all rates of the key have them, and settles the
-- loan before. It runs in Redis, so its steps cannot mix with other calls.
--
-- KEYS[1] holds, for each rate, the tokens used in each slot (window.go). Lent
-- tokens count in the slot in which their loan ends until the loan is settled,
-- because the gateway may use them until then.
--
-- ARGV, with times in microseconds:
--   1     the time; empty: the clock of Redis
--   2, 3  the least and the most tokens to lend
--   4-6   the loan to settle: its generation, tokens lent, tokens used
--   7     tokens used without a loan
--   8     the time since the last of the used tokens was used
--   9     the life of the new loan
--   then for each rate: its limit, its period, the slot of the loan to settle
--
-- The answer:
--   the tokens lent, the generation
--   then for each rate: the tokens left, the time until more are left, the slot
--   of the new loan, and a number n of slots. n is 0 unless the least could not
--   be lent. Then n pairs follow, the oldest slot first: the time until the slot
--   has left the window, and the tokens used in it.
local slots = 32
local now = tonumber(ARGV[1])
if not now then
	local t = redis.call('TIME')
	now = t[1] * 1000000 + t[2]
end
local least, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local generation, lent, used = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local unreported, ago, life = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local rates = (#ARGV - 9) / 3

-- A record that cannot be read is one key's only: that key begins anew.
local function readable(state)
	if type(state) ~= 'table' or type(state.marks) ~= 'table' or #state.marks ~= rates then
		return false
	end
	local whole = function(n) return type(n) == 'number' and n == math.floor(n) and math.abs(n) < 2 ^ 53 end
	if not whole(state.time) or not whole(state.generation) then
		return false
	end
	for i = 1, rates do
		if type(state.marks[i]) ~= 'table' then
			return false
		end
		for s, n in pairs(state.marks[i]) do
			if not whole(s) or not whole(n) then
				return false
			end
		end
	end
	return true
end

local text, unpacked, state = redis.pcall('GET', KEYS[1]), false, nil
if type(text) == 'string' then
	unpacked, state = pcall(cmsgpack.unpack, text)
end
if not unpacked or not readable(state) then
	state = {generation = now, time = now, marks = {}}
end
local back = state.time - now
if back > 60000000 then
	-- The clock was ahead by more than a minute. The costs keep their age by the right clock; what
	-- is lent counts as lost.
	for i = 1, rates do
		local width = math.floor((tonumber(ARGV[8 + 3 * i]) + slots - 1) / slots)
		local marks = {}
		for s, n in pairs(state.marks[i]) do
			local slot = s - math.floor(back / width)
			marks[slot] = (marks[slot] or 0) + n
		end
		state.marks[i] = marks
	end
	state.generation, state.time = now, now
end
now = math.max(now, state.time) -- a clock that steps back a little admits nothing extra
state.time = now

local function add(marks, slot, n)
	marks[slot] = (marks[slot] or 0) + n
end

local available, keep = math.huge, 0
local left, oldest = {}, {}
for i = 1, rates do
	local limit, period, slot = tonumber(ARGV[7 + 3 * i]), tonumber(ARGV[8 + 3 * i]), tonumber(ARGV[9 + 3 * i])
	local width = math.floor((period + slots - 1) / slots)
	local last = math.floor((now - ago) / width)
	local marks = state.marks[i] or {}
	state.marks[i] = marks
	if lent > 0 and generation == state.generation and (marks[slot] or 0) >= lent then
		add(marks, slot, -lent)
		add(marks, math.min(slot, last), used)
	else -- Redis has lost the loan; its tokens are used all the same
		add(marks, last, used)
	end
	add(marks, last, unreported)
	local sum = 0
	for s, n in pairs(marks) do
		if n <= 0 or (s + 1) * width + period <= now then
			marks[s] = nil
		else
			sum = sum + n
			oldest[i] = math.min(oldest[i] or s, s)
		end
	end
	left[i] = limit - sum
	available = math.min(available, left[i])
	keep = math.max(keep, period + life + 2 * width)
end

local grant = 0
if available >= least then -- lend at most half: other gateways need tokens too
	grant = math.max(least, math.min(most, math.floor(available / 2)))
end

local answer = {grant, state.generation}
for i = 1, rates do
	local limit, period = tonumber(ARGV[7 + 3 * i]), tonumber(ARGV[8 + 3 * i])
	local width = math.floor((period + slots - 1) / slots)
	local marks = state.marks[i]
	local slot, order = math.floor((now + life) / width), {}
	if available < least then
		for s in pairs(marks) do
			order[#order + 1] = s
		end
		table.sort(order)
	end
	if grant > 0 then
		add(marks, slot, grant)
		oldest[i] = oldest[i] or slot
	end
	answer[#answer + 1] = left[i] - grant
	answer[#answer + 1] = oldest[i] and (oldest[i] + 1) * width + period - now or 0
	answer[#answer + 1] = slot
	answer[#answer + 1] = #order
	for _, s in ipairs(order) do
		answer[#answer + 1] = (s + 1) * width + period - now
		answer[#answer + 1] = marks[s]
	end
end
if grant > 0 or lent > 0 or used + unreported > 0 then
	redis.call('SET', KEYS[1], cmsgpack.pack(state), 'PX', math.ceil(keep / 1000) + 1000)
end
return answer
