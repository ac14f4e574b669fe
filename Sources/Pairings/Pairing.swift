public import Dispatch
public import SharedContainer
public import Wormhole

/// Which watches a phone is paired with in a container, and what is installed where: what devices
/// know by themselves, and here somebody says.
///
/// It is one shared value: everybody sees a change at once, and whoever watches hears of it. A
/// container in which nobody has said anything has one watch, named `watch`, paired and in range,
/// with both apps installed.
///
/// May be used from any thread.
public struct Pairing: Sendable {
  let hole: Wormhole
  private let channel: Wormhole.Channel<State>

  /// The channel that it lies in.
  public static let channelName = "WatchConnectivity/pairing"

  /// The pairing of a container.
  public init(in hole: Wormhole) {
    self.hole = hole
    channel = hole.channel(Self.channelName)
  }

  /// Opens a container by its path for its pairing.
  public init(directory: String) throws(WormholeError) {
    self.init(in: try Wormhole(directory: directory))
  }

  /// What is so now.
  public var state: State { get throws(WormholeError) { try versioned.state } }

  /// The same, with a number that rises with each change.
  package var versioned: (state: State, version: Int) {
    get throws(WormholeError) {
      guard let latest = try channel.latest else { return (State(), 0) }
      return (latest.value ?? State(), latest.version)
    }
  }

  /// Calls a closure with what is so now if anybody has said anything, and with each change.
  ///
  /// - Parameters:
  ///   - queue: where it is called; by default on a thread of the module's own.
  ///   - handler: gets the state; of changes in quick succession the newest.
  @discardableResult
  public func watch(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (State) -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    try channel.watch(on: queue) { handler($0.value ?? State()) }
  }

  // MARK: Changes

  /// Changes it in one step; nobody else's change is lost.
  ///
  /// - Returns: what is so then.
  @discardableResult
  public func update(_ body: (inout State) throws -> Void) throws -> State {
    try channel.update(default: State(), body)
  }

  /// Pairs the phone with a watch, which becomes the active one: of a watch that is paired already
  /// it says only that.
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

  /// Takes a watch away; if it was the active one, the first of those left becomes it.
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

  /// Uninstalls an app; with the watch's go its complication and the directory of the phone for it.
  public func uninstall(_ app: App, watch: String? = nil) throws {
    try setInstalled(app, false, watch)
  }

  /// Puts the watch app's complication on the active face, or takes it away.
  public func setComplication(enabled isEnabled: Bool, watch: String? = nil) throws {
    try change(watch, "enable the complication of") { $0.isComplicationEnabled = isEnabled }
  }

  /// Brings a watch and the phone within each other's reach, or out of it.
  public func setInRange(_ isInRange: Bool, watch: String? = nil) throws {
    try change(watch, "set the range of") { $0.isInRange = isInRange }
  }

  private func setInstalled(_ app: App, _ isInstalled: Bool, _ watch: String?) throws {
    switch app {
    case .phone: try update { $0.isPhoneAppInstalled = isInstalled }
    case .watch:
      let name = try change(watch, "install the app on") { watch in
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
          hint: "pair it first")
      }
      body(&watch)
      state.watches[name] = watch
      changed = name
    }
    return changed
  }

  /// Takes one of a day's complication transfers, if there are any left.
  ///
  /// - Parameter limit: how many there are a day.
  package func takeComplicationTransfer(day: Int, limit: Int) throws -> Bool {
    var isTaken = false
    try update { state in
      isTaken = state.complicationTransfersLeft(day: day, limit: limit) > 0
      guard isTaken else { return }
      if state.budgetDay != day { (state.budgetDay, state.budgetUsed) = (day, 0) }
      state.budgetUsed += 1
    }
    return isTaken
  }
}

/// One of the two apps.
extension Pairing {
  /// On which of the two an app is.
  public enum App: String, Codable, Hashable, Sendable, CaseIterable {
    /// The phone's.
    case phone
    /// The watch's.
    case watch
  }
}
