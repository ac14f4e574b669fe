import CommandLine
import PropertyLists
import SharedContainer
import Wormhole

extension Verb {
  static let doctor = Verb(
    "doctor", "look for what is wrong with a container", [], [.repair],
    [
      "Looks through the whole container and changes nothing: owner and modes, format, what the "
        + "file system can do, limits, what ended processes left, damaged and foreign files, who "
        + "holds locks, the names of members and accesses to files, and "
        + "messages that wait, were given up or cannot "
        + "be read. Each finding says what can be done. Exits with 1 if there is a problem.",
      "With --repair, does what can be done without losing anything, and then looks again. With "
        + "--json, writes one object a finding.",
    ],
    [
      Example("wormhole doctor", "look"),
      Example("wormhole doctor --repair", "mend what can be mended"),
    ]
  ) { invocation in
    let hole = try invocation.open(create: false) { $0.isForReading = true }
    if invocation.has(.repair) {
      for finding in try hole.repair() + hole.sweepFiles(isLooking: false) {
        try invocation.output.ofDone.write(finding, isRepaired: true)
      }
    }
    let findings =
      try hole.container.inspect() + hole.inspectMail() + hole.sweepFiles(isLooking: true)
    for finding in findings { try invocation.output.write(finding) }
    return findings.contains { $0.severity == .problem } ? ExitCode.no.rawValue : 0
  }
}

extension Output {
  fileprivate func write(_ finding: Finding, isRepaired: Bool = false) throws {
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
  static let repair = Option("repair", nil, "do what can be done without losing anything")
}
