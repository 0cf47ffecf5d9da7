-- The gateway's job in Lua: a signed v1 payin in, a signed v2 deposit out, a v1 reply back. Written for speed on LuaJIT:
-- OpenSSL by FFI with reused hashing states, compiled patterns, few lookups.
--
-- Limits of cjson, which this has too: duplicate keys are not detected (the last one counts), numbers inside paymentData
-- pass through binary floats and change their spelling, {} and [] look the same, text that is not UTF-8 is passed on. The
-- merchant's callback address is passed on unchanged, since a relay would have to store it; and the shop's schema is not
-- checked.

local bit = require "bit"
local cjson = require "cjson.safe"
local ffi = require "ffi"

local C, byte, sub, lower, find = ffi.C, string.byte, string.sub, string.lower, string.find
local re_find, re_match = ngx.re.find, ngx.re.match

ffi.cdef [[
typedef struct { uint32_t state[8], low, high, data[16]; unsigned int num, length; } SHA256_CTX;
int SHA256_Init(SHA256_CTX *context);
int SHA256_Update(SHA256_CTX *context, const void *data, size_t len);
int SHA256_Final(unsigned char *digest, SHA256_CTX *context);
int CRYPTO_memcmp(const char *a, const char *b, size_t len);
unsigned char *ngx_hex_dump(unsigned char *dst, const unsigned char *src, size_t len);
int inet_pton(int family, const char *text, void *address);
]]

cjson.decode_max_depth(32)

local _M = {}

-- Keys -----------------------------------------------------------------------------------------------------------------

-- SHA-256 states after the secret's inner and outer block: HMAC continues from copies of these. OpenSSL's own HMAC costs three
-- times as much, because its providers allocate memory.
local function keyed(secret)
    local function after(pad)
        local context = ffi.new("SHA256_CTX")
        local block = {}
        for i = 1, 64 do block[i] = string.char(bit.bxor(byte(secret, i) or 0, pad)) end
        C.SHA256_Init(context)
        C.SHA256_Update(context, table.concat(block), 64)
        return context
    end
    return { inner = after(0x36), outer = after(0x5c) }
end

-- Reports whether an address is in one of these networks. Each network is a closure that calls the next one, since a loop would
-- keep the caller out of the JIT.
local function networks(list, i)
    i = i or 1
    local one = list[i]
    if not one then return function() return false end end
    local a, b, c, d, length = unpack(one)
    local address = bit.bor(bit.lshift(a, 24), bit.lshift(b, 16), bit.lshift(c, 8), d)
    local mask, rest = bit.lshift(-1, 32 - length), networks(list, i + 1)
    return function(peer) return bit.band(peer, mask) == address or rest(peer) end
end

local KEYS = {
    ["@KEY@"] = {
        v1 = keyed("@V1@"), v2 = keyed("@V2@"), allows = networks { { 203, 0, 113, 0, 24 }, { 127, 0, 0, 0, 8 } },
        per_second = 1000000, shop = "card-eur",
    },
    ["@FAR_KEY@"] = {
        v1 = keyed("@FAR_V1@"), v2 = keyed("@FAR_V2@"), allows = networks { { 203, 0, 113, 0, 24 } },
        per_second = 1000000, shop = "card-eur",
    },
}

-- Cryptography ---------------------------------------------------------------------------------------------------------

local digest = ffi.new("unsigned char[32]")
local hex = ffi.new("unsigned char[64]")
local hashing = ffi.new("SHA256_CTX")
local SIZE = ffi.sizeof("SHA256_CTX")

-- The HMAC-SHA256 of up to two texts, in hex.
local function hmac(key, first, second)
    ffi.copy(hashing, key.inner, SIZE)
    C.SHA256_Update(hashing, first, #first)
    if second then C.SHA256_Update(hashing, second, #second) end
    C.SHA256_Final(digest, hashing)
    ffi.copy(hashing, key.outer, SIZE)
    C.SHA256_Update(hashing, digest, 32)
    C.SHA256_Final(digest, hashing)
    C.ngx_hex_dump(hex, digest, 32)
    return ffi.string(hex, 64)
end

local function same(a, b)
    return #a == #b and C.CRYPTO_memcmp(a, b, #a) == 0
end

-- Replies --------------------------------------------------------------------------------------------------------------

-- nginx's own request ids are random, which costs more than the whole signature.
local process, count = ngx.time() .. "-", 0

local function request_id()
    count = count + 1
    return process .. count
end

local function reply(status, body)
    ngx.status = status
    ngx.header["Content-Type"] = "application/json"
    ngx.header["Content-Length"] = #body
    ngx.header["X-Request-Id"] = ngx.var.http_x_request_id or request_id()
    ngx.print(body)
    return ngx.exit(ngx.HTTP_OK)
end

local function refuse(status, message)
    return reply(status, '{"error":{"code":' .. status .. ',"message":' .. cjson.encode(message) .. '}}')
end

-- Admission ------------------------------------------------------------------------------------------------------------

local function peer()
    local a, b, c, d = byte(ngx.var.binary_remote_addr, 1, 4)
    return bit.bor(bit.lshift(a, 24), bit.lshift(b, 16), bit.lshift(c, 8), d)
end

-- Requests of this second, counted in a shared dictionary, which needs no extra lock.
local function within_rate(name, per_second)
    local count = ngx.shared.rates:incr(name .. ngx.time(), 1, 0, 2)
    return count and count <= per_second
end

local function recent(timestamp)
    if not re_find(timestamp, "^[0-9]{1,12}$", "jo") then return false end
    local age = ngx.time() - tonumber(timestamp)
    return age <= 300 and age >= -300
end

-- Members --------------------------------------------------------------------------------------------------------------

local KNOWN = {
    external_id = true, amount = true, currency = true, shop_code = true, callback_url = true, merchant_user_id = true,
    merchant_user_ip = true, paymentData = true,
}
local NULL = cjson.null

-- Bytes are at least as many as characters, and few ids need counting: a loop here would keep the caller out of the JIT.
local function is_longer_than_255(text)
    if #text <= 255 then return false end
    local count = 0
    for i = 1, #text do
        local b = byte(text, i)
        if b < 0x80 or b >= 0xc0 then count = count + 1 end
    end
    return count > 255
end

local function present(value)
    if value == NULL then return nil end
    return value
end

-- A JSON string. Most texts need no encoder, and a call of C keeps the JIT out.
local function quoted(text)
    if re_find(text, [=[["\\\x00-\x1f\x7f]]=], "jo") then return cjson.encode(text) end
    return '"' .. text .. '"'
end

local function is_text(value)
    return value == nil or value == NULL or type(value) == "string"
end

-- Returns the exact amount as a JSON number; nil when it is no amount.
local function amount_of(text)
    if type(text) ~= "string" then return nil end
    local parts = re_match(text, [[^0*([0-9]{0,13})(?:\.([0-9]{1,2}))?$]], "jo")
    if not parts or not re_find(text, "^[0-9]", "jo") then return nil end
    local whole, cents = parts[1], parts[2] or ""
    if whole == "" then whole = "0" end
    if byte(cents, 2) == 48 then cents = sub(cents, 1, 1) end
    if cents == "0" then cents = "" end
    if whole == "0" and cents == "" then return nil end
    return cents == "" and whole or whole .. "." .. cents
end

-- Digits within a signed 64-bit integer; false when there is no equivalent.
local function user_id_of(value)
    if type(value) == "number" then
        return value >= 0 and value < 2 ^ 53 and value % 1 == 0 and string.format("%.0f", value)
    end
    if type(value) ~= "string" or not re_find(value, "^(?:0|[1-9][0-9]{0,18})$", "jo") then return false end
    return (#value < 19 or value <= "9223372036854775807") and value
end

local URL = [[^https?://[^\s/?#@\\\x00-\x20\x7f-\xff]+(?:[/?#][\x21-\x5b\x5d-\x7e]*)?$]]

local function is_url(text)
    return type(text) == "string" and #text <= 2048 and re_find(text, URL, "jo") ~= nil
end

local address = ffi.new("unsigned char[16]")

local function is_address(text)
    return type(text) == "string" and #text < 46 and (C.inet_pton(2, text, address) == 1 or C.inet_pton(10, text, address) == 1)
end

-- Translation ----------------------------------------------------------------------------------------------------------

-- Turns `paymentData` into the members of `fields`, in place; or returns an error.
local function fields_of(data, user_ip)
    if data.method ~= nil or data.customer_account_id ~= nil or data.success_url ~= nil or data.pending_url ~= nil
        or data.fail_url ~= nil then
        return nil, "paymentData: holds a reserved name"
    end
    if not (is_text(data.first_name) and is_text(data.last_name) and is_text(data.middle_name) and is_text(data.email)
        and is_text(data.phone)) then
        return nil, "paymentData: a customer's field must be a string"
    end
    local own = present(data.merchant_user_ip)
    if own and not is_address(own) then return nil, "paymentData.merchant_user_ip: must be an IP address" end
    if user_ip then
        if not is_address(user_ip) then return nil, "merchant_user_ip: must be an IP address" end
        if own and own ~= user_ip then return nil, "merchant_user_ip: differs from paymentData.merchant_user_ip" end
        data.merchant_user_ip = user_ip
    end
    return data
end

-- Returns the v2 body and the order's id; or an error.
local function translate(body)
    local v1 = cjson.decode(body)
    if type(v1) ~= "table" or v1[1] ~= nil then return nil, "the body: must be a JSON object" end
    for name in pairs(v1) do
        if not KNOWN[name] then return nil, name .. ": is not a known field" end
    end
    local id = v1.external_id
    if type(id) ~= "string" or id == "" or find(id, "\0", 1, true) or is_longer_than_255(id) then
        return nil, "external_id: must be a string of 1 to 255 characters"
    end
    local amount = amount_of(v1.amount)
    if not amount then return nil, "amount: must be a decimal string greater than 0" end
    if type(v1.currency) ~= "string" or not re_find(v1.currency, "^[A-Za-z]{3}$", "jo") then
        return nil, "currency: must be 3 letters"
    end
    local shop = present(v1.shop_code)
    if shop and type(shop) ~= "string" then return nil, "shop_code: must be a string" end
    local callback = v1.callback_url
    if not is_url(callback) or byte(callback, 5) ~= 115 then return nil, "callback_url: must be an https:// URL" end
    local user = present(v1.merchant_user_id)
    if user then
        user = user_id_of(user)
        if not user then return nil, "merchant_user_id: must be digits without a leading zero" end
    end
    local data = v1.paymentData
    if type(data) ~= "table" or data[1] ~= nil then return nil, "paymentData: must be a JSON object" end
    local back = data.return_user_url
    if not is_url(back) then return nil, "paymentData.return_user_url: must be an http(s):// URL" end
    data.return_user_url = nil
    local fields, wrong = fields_of(data, present(v1.merchant_user_ip))
    if not fields then return nil, wrong end

    -- A valid address contains nothing that JSON escapes.
    local quoted_back = '"' .. back .. '"'
    local v2 = '{"order_id":' .. quoted(id) .. ',"amount":' .. amount .. ',"currency":"' .. v1.currency .. '"'
        .. (shop and ',"method":' .. quoted(shop) or "") .. (user and ',"customer_account_id":' .. user or "")
        .. ',"callback_url":"' .. callback .. '","success_url":' .. quoted_back .. ',"pending_url":' .. quoted_back
        .. ',"fail_url":' .. quoted_back .. (next(fields) and ',"fields":' .. cjson.encode(fields) or "") .. "}"
    return v2, id
end

-- The route ------------------------------------------------------------------------------------------------------------

function _M.payin()
    local var = ngx.var
    if var.request_method ~= "POST" then return refuse(405, "only POST") end
    if var.args then return refuse(400, "a POST takes no query") end
    local kind = var.http_content_type
    if not kind or not re_find(kind, "^application/json(?:;.*)?$", "jo") then return refuse(415, "must be application/json") end
    local name = var.http_x_api_key
    local key = name and KEYS[name]
    if not key then return refuse(401, "the request is not authentic") end
    if not key.allows(peer()) then return refuse(403, "not allowed from this address") end
    if not within_rate(name, key.per_second) then
        ngx.header["Retry-After"] = 1
        return refuse(429, "too many requests")
    end
    ngx.req.read_body()
    local body = ngx.req.get_body_data() or ""
    local timestamp, signature = var.http_x_timestamp, var.http_x_signature
    if not timestamp or not signature or not recent(timestamp) then return refuse(401, "the request is not authentic") end
    if not same(hmac(key.v1, timestamp .. ".POST./api/v1/payin.", body), lower(signature)) then
        return refuse(401, "the request is not authentic")
    end
    local v2, id = translate(body)
    if not v2 then return refuse(400, id) end
    ngx.req.set_body_data(v2)
    var.signature = hmac(key.v2, v2)
    var.order = '"external_id":' .. quoted(id) .. ","
end

local KEPT = { [400] = true, [409] = true, [429] = true, [503] = true }
local UNUSABLE = '{"error":{"code":502,"message":"the same external_id may be sent again"}}'

-- The v1 reply is the v2 reply with the order's id put in front: its length is known before its body is.
function _M.head()
    local order = ngx.var.order
    if order == "" then return end
    local header = ngx.header
    header["X-Request-Id"] = ngx.var.http_x_request_id or request_id()
    if ngx.status == 200 then
        header["Content-Length"] = tonumber(ngx.var.upstream_http_content_length) + #order
    elseif KEPT[ngx.status] then
        ngx.var.order = ""
    else
        ngx.status = 502
        header["Content-Length"] = #UNUSABLE
    end
end

function _M.body()
    local order = ngx.var.order
    if order == "" then return end
    local arg = ngx.arg
    local chunk = arg[1]
    if chunk == "" then return end
    arg[1] = ngx.status == 200 and "{" .. order .. sub(chunk, 2) or UNUSABLE
    ngx.var.order = ""
end

return _M
