public import Dispatch
public import Wormhole
public import WormholeContainerStorage

/// The watches with which a phone is paired in a container, and the apps installed on each device.
///
/// Devices know this themselves; here a program sets it. The pairing is one shared value: all
/// processes see a change at once, and every watch on the pairing is notified. A container in which
/// no program has set a pairing has one watch, named `watch`, paired and in range, with both apps
/// installed.
///
/// May be used from any thread.
public struct Pairing: Sendable {
  let container: SharedContainer
  private let channel: Channel<State>

  /// The channel that stores the pairing.
  public static let channelName = "WatchConnectivity/pairing"

  /// The pairing of a container.
  public init(in container: SharedContainer) {
    self.container = container
    channel = container.channel(Self.channelName)
  }

  /// Opens a container by its path for its pairing.
  public init(directory: String) throws(WormholeError) {
    self.init(in: try SharedContainer(directory: directory))
  }

  /// The current state.
  public var state: State { get throws(WormholeError) { try versioned.state } }

  /// The current state, with a version that rises with each change.
  package var versioned: (state: State, version: Int) {
    get throws(WormholeError) {
      guard let latest = try channel.latest else { return (State(), 0) }
      return (latest.value ?? State(), latest.version)
    }
  }

  /// Calls a closure with the current state if a program has set one, and with each change.
  ///
  /// - Parameters:
  ///   - queue: the queue on which the closure is called; by default a thread of the module's own.
  ///   - handler: receives the state; of changes in quick succession, the newest.
  @discardableResult
  public func watch(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (State) -> Void
  ) throws(WormholeError) -> Subscription {
    try channel.watch(on: queue) { handler($0.value ?? State()) }
  }

  // MARK: Changes

  /// Changes the state atomically; no concurrent change is lost.
  ///
  /// - Returns: the new state.
  @discardableResult
  public func update(_ body: (inout State) throws -> Void) throws -> State {
    try channel.update(default: State(), body)
  }

  /// Pairs the phone with a watch and makes it the active watch; a watch that is already paired
  /// only becomes active.
  public func pair(_ watch: String = State.usualWatch) throws {
    try update { state in
      if state.watches[watch] == nil {
        var new = Watch()
        new.renewDirectory()
        state.watches[watch] = new
      }
      state.active = watch
    }
  }

  /// Unpairs a watch; if the watch was active, the first remaining watch becomes active.
  public func unpair(_ watch: String? = nil) throws {
    var gone: String?
    try update { state in
      gone = watch ?? state.active
      guard let gone else { return }
      state.watches[gone] = nil
      if state.active == gone { state.active = state.watches.keys.min() }
    }
    if let gone { try removeOldDirectories(of: gone) }
  }

  /// Installs an app.
  public func install(_ app: App, watch: String? = nil) throws {
    try setInstalled(app, true, watch)
  }

  /// Uninstalls an app; with the watch's app, its complication and the phone's directory for it go
  /// too.
  public func uninstall(_ app: App, watch: String? = nil) throws {
    try setInstalled(app, false, watch)
  }

  /// Puts the watch app's complication on the active face, or removes it from the face.
  public func setComplication(enabled isEnabled: Bool, watch: String? = nil) throws {
    try change(watch, "set the complication of") { $0.isComplicationEnabled = isEnabled }
  }

  /// Brings a watch and the phone within range of each other, or out of range.
  public func setInRange(_ isInRange: Bool, watch: String? = nil) throws {
    try change(watch, "set the range of") { $0.isInRange = isInRange }
  }

  private func setInstalled(_ app: App, _ isInstalled: Bool, _ watch: String?) throws {
    switch app {
    case .phone: try update { $0.isPhoneAppInstalled = isInstalled }
    case .watch:
      let name = try change(watch, isInstalled ? "install the app on" : "uninstall the app from") {
        watch in
        if isInstalled, !watch.isAppInstalled { watch.renewDirectory() }
        watch.isAppInstalled = isInstalled
        if !isInstalled { watch.isComplicationEnabled = false }
      }
      if !isInstalled { try removeOldDirectories(of: name) }
    }
  }

  /// - Returns: the watch's name.
  @discardableResult
  private func change(
    _ name: String?, _ operation: String, _ body: (inout Watch) -> Void
  ) throws -> String {
    var changed = ""
    try update { state in
      guard let name = name ?? state.active, var watch = state.watches[name] else {
        throw WormholeError(
          .notFound, operation, name ?? State.usualWatch, because: "no such watch is paired",
          hint: "pair the watch with 'wormhole watchconnectivity pair'")
      }
      body(&watch)
      state.watches[name] = watch
      changed = name
    }
    return changed
  }

  /// Takes one of a day's complication transfers, if any are left.
  ///
  /// - Parameter limit: the number of transfers per day.
  /// - Returns: the day of the budget from which the transfer was taken, which may be the next day;
  ///   nil if no transfer is left.
  package func takeComplicationTransfer(day: Int, limit: Int) throws -> Int? {
    var taken: Int?
    try update { state in
      guard state.complicationTransfersLeft(day: day, limit: limit) > 0 else { return }
      if !state.isBudget(for: day) { (state.budgetDay, state.budgetUsed) = (day, 0) }
      state.budgetUsed += 1
      taken = state.budgetDay
    }
    return taken
  }

  /// Returns a complication transfer to the budget after its sending has failed.
  ///
  /// - Parameter day: the day of the budget, as returned by the call that has taken the transfer.
  package func returnComplicationTransfer(day: Int) throws {
    try update { state in
      if state.budgetDay == day { state.budgetUsed = max(0, state.budgetUsed - 1) }
    }
  }
}

/// The two apps of a pairing.
extension Pairing {
  /// The device on which an app is installed.
  public enum App: String, Codable, Hashable, Sendable, CaseIterable {
    /// The phone's.
    case phone
    /// The watch's.
    case watch
  }
}
