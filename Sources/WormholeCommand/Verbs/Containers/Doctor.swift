import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists

extension Verb {
  static let doctor = Verb(
    "doctor", "check a container for problems", [], [.repair],
    [
      "Checks the whole container and changes nothing: owner and modes, format, capabilities of "
        + "the file system, limits, leftovers of ended processes, damaged and foreign files, "
        + "holders of locks, of member names and of accesses to files, and messages that wait, "
        + "are dead-lettered or cannot be read. Each finding states the possible remedy. Exits "
        + "with 1 if there is a problem.",
      "With --repair, makes all repairs that lose no data, and then checks again. With --json, "
        + "writes one object per finding.",
    ],
    [
      Example("wormhole doctor", "check, and change nothing"),
      Example("wormhole doctor --repair", "repair without losing data, then check"),
    ],
    action: "check the container"
  ) { invocation in
    let container = try invocation.open(create: false) { $0.isForReading = true }
    let progress = Progress(invocation.output)
    if invocation.has(.repair) {
      progress.show("repairing the container", always: true)
      var repairs = try container.repair()
      progress.show("removing files without messages", always: true)
      repairs += container.sweepFiles(isLooking: false)
      progress.show("clearing expired values", always: true)
      repairs += container.sweepExpired(isLooking: false)
      progress.clear()
      for repair in repairs { try invocation.output.ofDone.write(repair, isRepaired: true) }
    }
    progress.show("checking the container", always: true)
    var findings = try container.inspect()
    progress.show("checking messages", always: true)
    findings += container.inspectMail() + container.sweepFiles(isLooking: true)
    progress.show("checking values", always: true)
    findings += container.sweepExpired(isLooking: true)
    progress.clear()
    for finding in findings { try invocation.output.write(finding) }
    return findings.contains { $0.severity == .problem } ? ExitCode.no.rawValue : 0
  }
}

extension Output {
  func write(_ finding: Diagnosis, isRepaired: Bool = false) throws {
    guard isJSON else {
      let word = isRepaired ? "repaired" : finding.severity.rawValue
      let gap = String(repeating: " ", count: max(1, 10 - word.count))
      try write(line: "\(word)\(gap)\(finding.subject): \(finding.what)".inOneLine())
      if let advice = finding.advice, !isRepaired {
        try write(line: "          \(advice)".inOneLine())
      }
      return
    }
    try write(
      .finding,
      [
        "severity": .string(finding.severity.rawValue), "subject": .string(finding.subject),
        "finding": .string(finding.what), "advice": finding.advice.map { .string($0) },
        "repairable": .boolean(finding.isRepairable), "repaired": .boolean(isRepaired),
      ])
  }
}

extension Option {
  static let repair = Option("repair", nil, "make all repairs that lose no data")
}
