-- Refusal of jobs by which one user would take slurmctld from the others, or write to their terminals.

-- Fields that programs print for other users, or that slurmctld takes apart while everybody waits.
local TEXTS = {
   "account", "admin_comment", "array_inx", "batch_features", "burst_buffer", "clusters", "comment", "container",
   "dependency", "exc_nodes", "extra", "features", "gres", "licenses", "mail_user", "mcs_label", "name", "network",
   "partition", "prefer", "qos", "req_nodes", "reservation", "std_err", "std_in", "std_out", "tres_bind", "tres_freq",
   "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "wckey", "work_dir",
}

-- Job arrays of thousands of single numbers are possible, as are dependencies on as many jobs.
local TEXT_BYTES = 16384

-- Lists of nodes: slurmctld makes every name of one before it looks for the nodes.
local NODE_LISTS = {
   { field = "req_nodes", option = "--nodelist" },
   { field = "exc_nodes", option = "--exclude" },
}

local function is_empty(text)
   return text == nil or text == ""
end

-- How many numbers a list of ranges has: "0-9", "1,3,5-9:2".
local function numbers(ranges)
   local sum = 0
   for range in ranges:gmatch("[^,]+") do
      local low, high, step = range:match("^%s*(%d+)%-(%d+):?(%d*)")
      low, high, step = tonumber(low), tonumber(high), tonumber(step) or 1
      sum = sum + ((low and high >= low) and math.floor((high - low) / math.max(step, 1)) + 1 or 1)
   end
   return sum
end

-- True if there are digits, "-" and "," alone between brackets, and no bracket is left over. Slurm would read more than is
-- counted here: its numbers may have signs and blanks, and of several brackets it takes the innermost.
local function is_list(list)
   return list:gsub("%[[%d,%-]*%]", ""):find("[%[%]]") == nil
end

-- How many names such a list has: each pair of brackets multiplies. One without a number counts, too: Slurm judges it.
local function names(list)
   local sum = 0
   local counted = list:gsub("%[([%d,%-]*)%]", function(ranges)
      return string.format("[%.0f]", math.max(numbers(ranges), 1))
   end)
   for name in counted:gmatch("[^,%s]+") do
      local product = 1
      for count in name:gmatch("%[(%d+)%]") do
         product = product * tonumber(count)
      end
      sum = sum + product
   end
   return sum
end

-- C0, DEL, and C1 in UTF-8: terminals obey them.
local function has_control_characters(text)
   return text:find("%c") ~= nil or text:find("\194[\128-\159]") ~= nil
end

local function text_problem(field, text)
   if #text > TEXT_BYTES then
      return field .. ": " .. #text .. " bytes. Allowed: " .. TEXT_BYTES .. "."
   end
   if has_control_characters(text) then
      return field .. ": has a control character, as a line end or an escape. Give it without."
   end
   return nil
end

local function list_problem(option, list)
   if not is_list(list) then
      return option .. ": not a list of nodes. Give names, with ranges as in node-[0-9,12]."
   end
   if names(list) > MAX_HOSTS then
      return option .. ": more than " .. MAX_HOSTS .. " names (slurm.max_nodes, at least 4096). Name nodes that there are."
   end
   return nil
end

-- The first field of a job that is out of bounds, or nil: `value` returns a field that the job is given.
local function excess(value)
   for _, field in ipairs(TEXTS) do
      local text = value(field)
      local found = type(text) == "string" and text_problem(field, text)
      if found then
         return found
      end
   end
   for _, list in ipairs(NODE_LISTS) do
      local given = value(list.field)
      local found = type(given) == "string" and list_problem(list.option, given)
      if found then
         return found
      end
   end
   return nil
end

-- The image's slurmctld leaves this in the place of strings that are larger than the limit (bounded_environments.c).
local TOO_LARGE = "SOPERATOR_TOO_LARGE"

local function size_problem(name, bytes, kib, setting, advice)
   if (tonumber(bytes) or 0) > kib * 1024 then
      return name .. ": " .. bytes .. " bytes. Allowed: " .. kib * 1024 .. " (slurm." .. setting .. "). " .. advice
   end
   return nil
end

-- Bytes of strings as execve counts them, or those that the image's slurmctld has found. A user's own string of that
-- form never lowers the sum.
local function bytes_of(strings)
   local sum, found = 0, 0
   for _, text in pairs(strings or {}) do
      sum = sum + 8 + #text + 1
      found = math.max(found, tonumber(text:match("^" .. TOO_LARGE .. "=(%d+)$")) or 0)
   end
   return math.max(sum, found)
end

-- A problem of what slurmctld keeps of a job until it has ended, or nil. Only a batch job has an environment here.
local function kept_problem(job_desc)
   local script = job_desc.script
   local variables = script ~= nil and job_desc.environment or {}
   return size_problem("script", script and #script, MAX_SCRIPT_KIB, "max_script_kib", "Put the data into a file.")
      or size_problem("environment", variables[TOO_LARGE], MAX_ENVIRONMENT_KIB, "max_environment_kib",
         "Submit with less, as by --export=NONE.")
      or size_problem("argv", bytes_of(job_desc.argv), MAX_ARGUMENTS_KIB, "max_arguments_kib", "Put the data into a file.")
      or size_problem("spank_job_env", bytes_of(job_desc.spank_job_env), MAX_ARGUMENTS_KIB, "max_arguments_kib",
         "Put the data into a file.")
end

-- Jobs of a user that have not ended; each task of an array that waits is one.
local function jobs_of(user)
   local sum = 0
   for _, job in pairs(slurm.jobs or {}) do
      if job.user_id == user and (job.job_state or 0) % 256 <= 2 then -- pending, running, suspended
         sum = sum + math.max(job.array_task_cnt or 1, 1)
      end
   end
   return sum
end

-- Jobs that were added since slurmctld has listed its jobs for this script, which it does once a second at most.
local listed, added = nil, {}

-- A job more than one user may have, or nil.
local function one_too_many(job_desc)
   local user = tostring(job_desc.user_id)
   local more = is_empty(job_desc.array_inx) and 1 or numbers((job_desc.array_inx:gsub("%%.*", ""):gsub("[%[%]]", "")))
   if slurm.jobs ~= listed then
      listed, added = slurm.jobs, {}
   end
   local has = jobs_of(job_desc.user_id) + (added[user] or 0)
   if has + more <= MAX_JOBS_PER_USER then
      added[user] = (added[user] or 0) + more
      return nil
   end
   return "you have " .. has .. " jobs that have not ended, and this adds " .. more .. ". Allowed: " .. MAX_JOBS_PER_USER
      .. " at a time (slurm.max_jobs_per_user). Submit it when some have ended."
end
