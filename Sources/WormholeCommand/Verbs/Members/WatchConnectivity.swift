import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePairings
import WormholePropertyLists

extension Verb {
  static let watchConnectivity = Verb(
    "watchconnectivity", "set the state of a phone and its watches",
    [
      Operand("ACTION", .one, .words(PairingAction.allCases.map(\.rawValue))),
      Operand("VALUE", .optional), Operand("WATCH", .optional),
    ], [],
    [
      "For programs that use the module WatchConnectivity: sets the state that real devices "
        + "detect by themselves. A change takes effect at once, and the delegates of the "
        + "sessions are notified.",
      "ACTION is pair or unpair, with the name of a watch as VALUE; install or uninstall, with "
        + "phone or watch; complication, with on or off; range, with in or out; or state, which "
        + "prints the whole state. With several watches, WATCH selects the watch to change, by "
        + "default the active watch.",
      "A container without settings has one watch, 'watch', paired and in range, with both apps "
        + "installed. With --json, every action writes the state after the action.",
    ],
    [
      Example("wormhole watchconnectivity range out", "phone and watch cannot reach each other"),
      Example("wormhole watchconnectivity uninstall phone", "remove the phone's app"),
      Example("wormhole watchconnectivity pair second", "switch the phone to another watch"),
      Example("wormhole watchconnectivity state", "print the state"),
    ],
    heading: "Verbs for the drop-in modules",
    action: "set the state of a phone"
  ) { invocation in
    let action: PairingAction = try invocation.word {
      "change the pairing by '\($0)': the actions are"
    }
    let container = try invocation.open(create: true)
    let pairing = Pairing(in: container)
    if action != .state {
      try EnclosingLock.refuseChange(of: container, "change the pairing")
      try invocation.change(pairing, action)
    }
    let state = try pairing.state
    if invocation.output.isJSON {
      try invocation.output.ofDone.write(.pairing, state.object)
    } else if action == .state {
      for line in try state.lines() { try invocation.output.write(line: line) }
    }
    return 0
  }
}

enum PairingAction: String, CaseIterable {
  case pair, unpair, install, uninstall, complication, range, state
}

extension Invocation {
  private var value: String? { operands.count > 1 ? operands[1] : nil }
  private var watch: String? { operands.count > 2 ? operands[2] : nil }

  fileprivate func change(_ pairing: Pairing, _ action: PairingAction) throws {
    switch action {
    case .pair: try pairing.pair(value ?? Pairing.State.usualWatch)
    case .unpair: try pairing.unpair(value)
    case .install:
      try pairing.install(try choice(["phone": .phone, "watch": .watch]), watch: watch)
    case .uninstall:
      try pairing.uninstall(try choice(["phone": .phone, "watch": .watch]), watch: watch)
    case .complication:
      try pairing.setComplication(enabled: try choice(["on": true, "off": false]), watch: watch)
    case .range: try pairing.setInRange(try choice(["in": true, "out": false]), watch: watch)
    case .state: break
    }
  }

  private func choice<Choice>(_ choices: [String: Choice]) throws -> Choice {
    if let value, let choice = choices[value] { return choice }
    let words = choices.keys.sorted().joined(separator: " or ")
    let given = value.map { "VALUE is '\($0)'" } ?? "VALUE is missing"
    throw Failure.usage("cannot change '\(operands[0])': \(given), and must be \(words)")
  }
}

extension Pairing.State {
  fileprivate var object: [String: PropertyListValue?] {
    [
      "active": active.map { .string($0) }, "phoneApp": .boolean(isPhoneAppInstalled),
      "watches": .dictionary(
        watches.mapValues { watch in
          [
            "app": .boolean(watch.isAppInstalled), "inRange": .boolean(watch.isInRange),
            "complication": .boolean(watch.isComplicationEnabled),
          ]
        }),
    ]
  }

  fileprivate func lines() throws -> [String] {
    let phone = "phone\tapp \(isPhoneAppInstalled ? "installed" : "not installed")"
    return try [phone]
      + watches.sorted { $0.key < $1.key }.map { name, watch in
        [
          "watch \(try name.inOneLine())", active == name ? "active" : "not active",
          "app \(watch.isAppInstalled ? "installed" : "not installed")",
          "complication \(watch.isComplicationEnabled ? "on" : "off")",
          watch.isInRange ? "in range" : "out of range",
        ].joined(separator: "\t")
      }
  }
}
