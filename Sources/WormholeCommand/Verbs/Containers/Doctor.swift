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
    ]
  ) { invocation in
    let container = try invocation.open(create: false) { $0.isForReading = true }
    if invocation.has(.repair) {
      for finding in try container.repair() + container.sweepFiles(isLooking: false) {
        try invocation.output.ofDone.write(finding, isRepaired: true)
      }
    }
    let findings =
      try container.storage.inspect() + container.inspectMail()
      + container.sweepFiles(isLooking: true)
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
