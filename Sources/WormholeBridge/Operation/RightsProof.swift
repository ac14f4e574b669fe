/// Which of a machine's rights were tried, and with which result.
struct RightsProof {
  private let rights: MachineRights
  private(set) var working: Set<String> = []
  /// Why a right could not be tried, by its purpose.
  private var untried: [String: String] = [:]

  init(_ rights: MachineRights) { self.rights = rights }

  var count: Int { rights.rights.count }

  mutating func works(_ purpose: String) {
    assert(rights.rights.contains { $0.purpose == purpose }, purpose)
    working.insert(purpose)
    untried[purpose] = nil
  }

  mutating func cannotTry(_ purpose: String, because reason: String) {
    assert(rights.rights.contains { $0.purpose == purpose }, purpose)
    if !working.contains(purpose) { untried[purpose] = reason }
  }

  func right(_ purpose: String) -> MachineRights.Right? {
    rights.rights.first { $0.purpose == purpose }
  }

  /// The rights that could not be tried, in the order of the list, with the reasons.
  var open: [(right: MachineRights.Right, reason: String)] {
    rights.rights.compactMap { right in untried[right.purpose].map { (right, $0) } }
  }
}
