-- Refusal of jobs whose working directory or files are not at the same path in the jail and on the node's own root.
-- slurmd opens them there as the user, before the job is in the jail: they would fail, or be other ones. A symbolic link
-- that leads out passes here. slurmd follows it with the rights of the user, and the plugin refuses the task before its
-- program starts (spank-plugin/descriptors.h).

local FILES = {
   { field = "std_out", what = "output file", option = "--output", written = true },
   { field = "std_err", what = "error file", option = "--error", written = true },
   { field = "std_in", what = "input file", option = "--input", written = false },
}

-- Default output of a batch job (sbatch(1)). The file of an array is as harmless.
local DEFAULT_OUTPUT = "slurm-%j.out"

local function is_relative(path)
   return path:sub(1, 1) ~= "/"
end

-- An absolute path without ".", "..", "//" and a "/" at the end.
local function shortest(path)
   local parts = {}
   for part in path:gmatch("[^/]+") do
      if part == ".." then
         parts[#parts] = nil
      elseif part ~= "." then
         parts[#parts + 1] = part
      end
   end
   return "/" .. table.concat(parts, "/")
end

local function root_of(path, roots)
   for _, root in ipairs(roots) do
      if path == root or path:sub(1, #root + 1) == root .. "/" then
         return root
      end
   end
   return nil
end

-- The file that slurmd opens, as in fname_create (src/slurmd/common/fname.c): with a backslash anywhere, '%' has no
-- meaning, and the path is joined to the directory without a '/'. Only %x, the job's name, can add a '/'.
local function file_of(given, work_dir, job_name)
   local escaped = given:find("\\", 1, true) ~= nil
   local path
   if escaped then
      path = given:gsub("\\(.?)", "%1")
   else
      path = given:gsub("%%(%d*)(.?)", function(_, letter)
         return letter == "x" and job_name or nil
      end)
   end
   if is_relative(given) then
      path = work_dir .. (escaped and "" or "/") .. path
   end
   return shortest(path)
end

local function shown(path)
   return '"' .. path:gsub("%c", "?") .. '"'
end

local function work_dir_problem(work_dir)
   local allowed = "Allowed: " .. table.concat(SHARED, ", ") .. ", what is in them, and / itself."
   if is_empty(work_dir) or is_relative(work_dir) then
      return "working directory " .. shown(work_dir or "") .. ": not an absolute path. Give one by --chdir. " .. allowed
   end
   local path = shortest(work_dir)
   if path ~= "/" and not root_of(path, SHARED) then
      return "working directory " .. shown(path) .. ": not shared with the nodes, so no job can start in it. Change "
         .. "the directory, or give another by --chdir. " .. allowed
   end
   return nil
end

local function file_problem(file, path)
   local root = root_of(path, SHARED)
   if path == "/dev/null" or (root and not (file.written and root_of(path, READ_ONLY))) then
      return nil
   end
   local why = root and (root .. " is read-only") or "not shared with the nodes"
   local roots = file.written and WRITABLE or SHARED
   return file.what .. " " .. shown(path) .. ": " .. why .. ". Give another by " .. file.option .. ". Allowed: files in "
      .. table.concat(roots, ", ") .. ", and /dev/null."
end

-- The first problem of a job, or nil. `value` returns a field of the job; `concerns` is true for a field to check.
local function problem(value, concerns)
   local work_dir = value("work_dir")
   if concerns("work_dir", work_dir) then
      local found = work_dir_problem(work_dir)
      if found then
         return found
      end
   end
   for _, file in ipairs(FILES) do
      local given = value(file.field)
      if concerns(file.field, given) and not is_empty(given) then
         local found = file_problem(file, file_of(given, work_dir or "/", value("name") or ""))
         if found then
            return found
         end
      end
   end
   return nil
end

-- Slurm's own containers need a runtime on the worker's root, where nothing of a user runs. Without one Slurm fails such
-- jobs with "Unspecified error".
local function bundle_problem(bundle)
   if is_empty(bundle) then
      return nil
   end
   return "--container " .. shown(bundle) .. ": OCI bundles are not supported. Give an image by --container-image."
end

-- Returns the answer to slurmctld. An error in here refuses the job: slurmctld itself would accept it.
local function answer(look)
   local ran, found = pcall(look)
   if ran and found == nil then
      return slurm.SUCCESS
   end
   if not ran then
      slurm.log_error("%s", "job_submit.lua: " .. tostring(found))
      found = "the job could not be checked. Report it to the administrator; the reason is in slurmctld's log."
   end
   slurm.log_user("%s", found)
   return slurm.ESLURM_ACCESS_DENIED
end

function slurm_job_submit(job_desc, _, _)
   return answer(function()
      local function value(field)
         local given = job_desc[field]
         if field == "std_out" and is_empty(given) and job_desc.script ~= nil then
            return DEFAULT_OUTPUT
         end
         return given
      end
      return excess(value) or kept_problem(job_desc) or bundle_problem(value("container"))
         or problem(value, function() return true end) or one_too_many(job_desc)
   end)
end

function slurm_job_modify(job_desc, job_rec, _, _)
   return answer(function()
      local moved, renamed = job_desc.work_dir ~= nil, job_desc.name ~= nil
      local function value(field)
         local given = job_desc[field]
         if given == nil then
            given = job_rec[field]
         end
         if field == "std_out" and is_empty(given) then
            return DEFAULT_OUTPUT
         end
         return given
      end
      -- Unchanged fields may be older than the rules of today.
      local function concerns(field, given)
         if job_desc[field] ~= nil then
            return true
         end
         local file = field ~= "work_dir" and given or "/"
         return (moved and is_relative(file)) or (renamed and file:find("%", 1, true) ~= nil)
      end
      return excess(function(field) return job_desc[field] end) or problem(value, concerns)
   end)
end

return slurm.SUCCESS
