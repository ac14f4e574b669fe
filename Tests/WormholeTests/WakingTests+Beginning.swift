import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// The state in which a started member begins.
extension WakingTests {
  @Test(.blocking) func itInheritsNothing() throws {
    let scene = try Scene()
    // The shell leaves a descriptor open that is not closed on exec; the waker has descriptors of
    // its own, and locks.
    let command = "exec 7</dev/null 8>/dev/null; trap '' HUP INT; exec \"$0\" \"$1\""
    let job = PeerJob.wake(scene.meeting.path, "watch", milliseconds: 30_000)
    let waker = try run("sh", ["-c", command, PeerJob.program] + job.arguments)
    #expect(waker.output == "awake\n", "\(waker.errors)")
    let line = try #require(try scene.started.first)
    #expect(line.hasSuffix(" descriptors 0 1 2 in / greeting good day"))
    let process = try scene.processes()[0]
    let folder = try Descriptor.open(path: "/proc/\(process)/fd", [.readOnly, .directory])
    for number in ["0", "1", "2"] {
      #expect(String(decoding: try folder.readSymbolicLink(number), as: UTF8.self) == "/dev/null")
    }
    let status = String(
      decoding: try Descriptor.open(path: "/proc/\(process)/status", [.readOnly]).contents(),
      as: UTF8.self)
    // The shell ignored hang-up and interrupt, the first two.
    let ignored = status.split(separator: "\n").first { $0.hasPrefix("SigIgn:") }
    #expect(ignored?.hasSuffix("0") == true, "\(ignored ?? "")")
    let stat = String(
      decoding: try Descriptor.open(path: "/proc/\(process)/stat", [.readOnly]).contents(),
      as: UTF8.self)
    let fields = stat.split(separator: ")").last!.split(separator: " ")
    #expect(fields[3] == "\(process)", "a session of its own")
    try scene.end()
  }

  /// Whatever the settings of the process that happens to need the member first.
  @Test(.blocking) func itHasTheSameUmaskNiceValueAndLimitsWhoeverStartsIt() throws {
    let scene = try Scene()
    let command = """
      umask 077; ulimit -S -n 300; ulimit -S -c unlimited; ulimit -S -f 100000; ulimit -S -t 100000
      ulimit -S -v 100000000; ulimit -S -d 90000000; ulimit -S -s 4096
      exec nice -n 5 "$0" "$1"
      """
    let job = PeerJob.wake(scene.meeting.path, "watch", milliseconds: 30_000)
    let waker = try run("sh", ["-c", command, PeerJob.program] + job.arguments)
    #expect(waker.output == "awake\n", "\(waker.errors)")
    let process = try scene.processes()[0]
    func contents(_ file: String) throws -> String {
      String(
        decoding: try Descriptor.open(path: "/proc/\(process)/\(file)", [.readOnly]).contents(),
        as: UTF8.self)
    }
    #expect(try contents("status").contains("Umask:\t0022\n"))
    // Only a process with privilege can lower its nice value.
    let nice = try contents("stat").split(separator: ")").last!.split(separator: " ")[16]
    #expect(nice == (Processes.effectiveUser == 0 ? "0" : "5"))
    let limits = try contents("limits").split(separator: "\n")
    for (name, soft) in [
      ("Max cpu time", "unlimited"), ("Max file size", "unlimited"),
      ("Max data size", "unlimited"), ("Max address space", "unlimited"),
      ("Max stack size", "8388608"), ("Max core file size", "0"), ("Max open files", "1024"),
    ] {
      let words = limits.first { $0.hasPrefix(name) }?.dropFirst(name.count).split(separator: " ")
      let (found, hard) = (words?[0], words?[1])
      #expect(found == soft[...] || found == hard, "\(name): \(words ?? [])")
    }
    try scene.end()
  }
}
