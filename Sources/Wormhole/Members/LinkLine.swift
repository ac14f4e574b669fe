/// A link from the view of one of two members.
struct LinkLine: Sendable {
  let link: any MessageLink
  let own: String
  let other: String

  var isCut: Bool { link.isCut(between: own, and: other) }
}

extension Reachability {
  /// The reachability of a running member behind a cut link.
  var whenCut: Self { self == .running ? .notRunning : self }
}
