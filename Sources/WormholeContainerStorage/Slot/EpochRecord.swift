internal import WormholePropertyLists

/// The epoch for stamps, with the runs of the machine in this epoch: the value of the slot `epoch`
/// in `system/`.
///
/// Stamps count from the start of the machine, so the epoch has to rise with each start. The
/// kernel's boot identifier alone does not prove a start: several container run-times give each of
/// their containers its own identifier, on one and the same machine.
struct EpochRecord: FileRecord, Equatable {
  var epoch = 0
  /// The boot identifiers by which programs know this run of the machine, and those of earlier
  /// runs, in the order of their arrival.
  private(set) var boots: [String] = []
  /// Nanoseconds since the machine started, when the last identifier was added.
  private(set) var clock: Int64 = 0
  /// Whether a new identifier has been found and the question of a restart is open: no process
  /// stamps messages then.
  var isUndecided = false

  /// The greatest epoch.
  static let last = ContainerMarker.lastEpoch
  /// The number of identifiers that are stored.
  ///
  /// A dropped identifier counts as new.
  static let longestList = 64

  mutating func visit(_ fields: inout some FieldVisitor) throws {
    try fields.field("epoch", &epoch)
    try fields.check("epoch", (0...Self.last).contains(epoch), "\(epoch) is not an epoch")
    try fields.field("boots", &boots)
    try fields.check("boots", boots.count <= Self.longestList, "\(boots.count) names are too many")
    try fields.field("clock", &clock)
    try fields.check("clock", clock >= 0, "\(clock) is not a time")
    try fields.field("undecided", &isUndecided)
  }

  /// Whether a process with this boot identifier may use the epoch.
  ///
  /// - Parameter now: nanoseconds since the machine started. If they are less than the recorded
  ///   ones, another run has the same identifier.
  func covers(_ boot: String, now: Int64) -> Bool {
    !isUndecided && now >= clock && boots.contains(boot)
  }

  mutating func note(_ boot: String, now: Int64) {
    boots.removeAll { $0 == boot }
    boots.append(boot)
    boots.removeFirst(max(0, boots.count - Self.longestList))
    clock = max(0, now)
  }
}

extension EpochRecord {
  /// Nil if there is no record yet.
  init?(_ content: Slot.Content, path: String) throws(WormholeError) {
    func damage(_ reason: String) -> WormholeError {
      WormholeError(
        .damaged, "read the epoch of", path, because: reason,
        hint: "end all programs of the container, and move system/epoch away; "
          + "pending messages may be delivered out of order afterwards")
    }
    switch content {
    case .nothing: return nil
    case .damaged(let reason): throw damage(reason)
    case .tooLarge(let size): throw damage("system/epoch has \(size) bytes")
    case .value(let bytes, _):
      do {
        self = try EpochRecord(bytes)
      } catch {
        throw damage("\(error)")
      }
    }
  }
}
