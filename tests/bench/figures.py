"""The figures of ./dev bench. Each takes the sitting and a contender, notes what it measured, and says whether the round counts."""
import resource
import time

FRAMES = (65536, 16384, 1024)
ROOMS = (1, 50, 500)
LOADS = ((20, "idle"), (1000, "light load"), (8000, "heavy load"))
STORM_CLIENTS = 1000
RETURNING_CLIENTS, COMEBACK_SECONDS = 10_000, 20


def relayed(sitting, contender, label, frame, rooms, *more):
    figures = sitting.load(contender, "throughput", "--rooms", rooms, "--frame", frame, "--seconds", sitting.options.seconds,
                           "--warmup", 0.5, *more)
    if figures:
        sitting.note(f"CPU-s/GB {label}", contender, figures["cpu_s_per_GB"])
        sitting.note(f"MB/s {label}", contender, figures["MBps"])
    return figures


def throughput(sitting, contender):
    """4 rooms, one way, as fast as it goes: one core is saturated, so MB/s is what it can do."""
    return all([relayed(sitting, contender, f"{frame // 1024} KiB", frame, sitting.options.rooms) for frame in FRAMES])


def duplex(sitting, contender):
    return all([relayed(sitting, contender, f"{frame // 1024} KiB, both ways", frame, sitting.options.rooms, "--duplex")
                for frame in FRAMES])


def many(sitting, contender):
    good, empty = True, contender.resident()
    for rooms in ROOMS:
        figures = relayed(sitting, contender, f"16 KiB, {rooms} rooms", 16384, rooms)
        good = good and figures is not None
        if figures and rooms == ROOMS[-1]:
            sitting.note(f"KB RSS/splice, {rooms} at full speed", contender, (figures["rss_kB"] - empty) * 1.024 / rooms)
    return good


def handshake(sitting, contender):
    for label, extra in (("full", []), ("resumed", ["--resume"])):
        figures = sitting.load(contender, "handshake", "--concurrency", 16, "--seconds", sitting.options.seconds, *extra)
        if figures is None:
            return False
        sitting.note(f"ms CPU/admission, {label}", contender, figures["cpu_ms_per_admission"])
        sitting.note(f"admissions/s, {label}", contender, figures["per_s"])
    return True


def latency(sitting, contender):
    for rate, label in LOADS:
        figures = sitting.load(contender, "latency", "--rooms", 16, "--rate", rate, "--seconds", sitting.options.seconds)
        if figures is None:
            return False
        for part in ("p50", "p99", "p999"):
            sitting.note(f"round trip {part} us, {label} ({rate}/s)", contender, figures[f"{part}_us"])
    return True


def storm(sitting, contender):
    """The longest round trip of live splices while many clients come at once. They share the load's core, so it is a bound."""

    def reconnect():
        time.sleep(1)
        sitting.beside(contender, "handshake", "--concurrency", STORM_CLIENTS, "--seconds", 2)

    figures = sitting.load(contender, "latency", "--rooms", 16, "--rate", 200, "--seconds", 6, beside=reconnect)
    if figures is None:
        return False
    sitting.note(f"longest round trip us while {STORM_CLIENTS} connect", contender, figures["max_us"])
    return True


def comeback(sitting, contender):
    """After a restart everybody connects at once, without a session to resume, beside 16 splices that are there already."""
    if descriptors_allow(contender) < RETURNING_CLIENTS:
        raise RuntimeError(f"{RETURNING_CLIENTS} clients need a higher limit of open files (ulimit -Hn)")
    contender.restart(*sitting.options.start)
    back = {}

    def reconnect():
        time.sleep(1)
        back.update(sitting.beside(contender, "idle", "--sockets", RETURNING_CLIENTS, "--concurrency", RETURNING_CLIENTS,
                                   "--hold", 0, "--timeout", 60))

    figures = sitting.load(contender, "latency", "--rooms", 16, "--rate", 200, "--seconds", COMEBACK_SECONDS, beside=reconnect)
    if figures is None or back["ramp_s"] > COMEBACK_SECONDS - 2:  # the splices were not watched to the end
        return False
    sitting.note(f"s until {RETURNING_CLIENTS} are back", contender, back["ramp_s"])
    sitting.note(f"longest round trip us while {RETURNING_CLIENTS} come back", contender, figures["max_us"])
    return True


def descriptors_allow(contender):
    return (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 300) // contender.descriptors


def idle(sitting, contender):
    allowed, most = descriptors_allow(contender), sitting.options.sockets
    for sockets in sorted({min(n, allowed) for n in (most // 9, most, 2 * most)}):
        contender.restart(*sitting.options.start)
        figures = sitting.load(contender, "idle", "--sockets", sockets, "--hold", 3, "--timeout", 120)
        if figures is None:
            return False
        sitting.note(f"KB RSS/parked mac, {sockets}", contender, figures["bytes_per_socket"] / 1000)
        # A connection has two ends on this machine, and the relay's is one of them. Of few, the kernel's own coming and going hides it.
        slab = figures["kernel_slab_bytes_per_socket_all_ends"]
        if contender.descriptors == 1 and slab > 0:
            sitting.note(f"KB kernel/parked mac, {sockets}", contender, slab / 2000)
    return True


ALL = {f.__name__: f for f in (throughput, duplex, many, handshake, latency, storm, comeback, idle)}
# A proxy has no admission of its own and no notion of a parked mac: only what it relays is compared.
FOR_PROXIES = {"throughput"}
# These take long and say nothing new about a relay that is only there to compare with.
FOR_OURS = {"duplex", "many", "storm", "comeback"}
