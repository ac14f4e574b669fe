internal import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The user defaults of a group: a single file, which all programs of the group change under one
/// lock.
///
/// Therefore a set of one key never undoes another program's set of another key, as happens with
/// Foundation's own class. A value that another program sets is visible to the next read.
///
/// No call of `UserDefaults` can fail. If the disk or the directory has a fault for longer than a
/// moment, reading behaves as if no value were stored, setting changes nothing, and ``DropInLog``
/// reports the cause.
final class GroupDefaults: UserDefaults {
  private let suite: String
  private let state: Monitor<State>

  private struct State {
    var settings: GroupSettings
    var watching: Subscription?
    /// The number of the latest series of attempts to watch.
    var series = 0
  }

  /// The registered defaults, for all groups of the process.
  ///
  /// Foundation's own objects store their registered defaults without a lock, so this class does
  /// not read them.
  private static let registered = Monitor<[String: PropertyListValue]>([:])

  init?(group: String) {
    let settings = SilentCall.attempt { try GroupSettings(group) }
    guard let settings else { return nil }
    (suite, state) = (group, Monitor(State(settings: settings)))
    super.init(suiteName: nil as String?)
    if !watch(settings) { watchLater() }
  }

  deinit { state.withLock { $0.watching.take() }?.stop() }

  // MARK: The container

  /// Returns the settings in the group's present container.
  ///
  /// - Parameter isMaking: whether a missing container is made. A read makes none: the removal of
  ///   the group's directory may be in progress, and would fail.
  private func settings(making isMaking: Bool) -> GroupSettings {
    let known = state.withLock { $0.settings }
    guard known.isGone.withLock({ $0 }), isMaking || SharedOpenings.hasContainer(suite),
      let next = SilentCall.attempt({ try GroupSettings(suite, creates: isMaking) })
    else { return known }
    // Another thread may have opened the container at the same time.
    let present = state.withLock { state in
      if state.settings === known { state.settings = next }
      return state.settings
    }
    if present === next, !watch(next) { watchLater() }
    return present
  }

  /// The settings for a read; nil while the group has no container.
  private var stored: Defaults? {
    let settings = settings(making: false)
    return settings.isGone.withLock { $0 } ? nil : settings.stored
  }

  /// - Returns: whether the system has permitted the watch.
  private func watch(_ settings: GroupSettings) -> Bool {
    let note = ChangeNote(self)
    let watching = SilentCall.attempt {
      try settings.noticingEnd { () throws(WormholeError) in
        try settings.stored.watchVersion { version in
          if settings.own.isNews(version) { note.post() }
        } failure: { error in
          DropInLog.tell(.error, error)
          guard error.code == .notAContainer else { return }
          settings.isGone.withLock { $0 = true }
          // The pause lets the program end its removal.
          note.object?.watchLater()
        }
      }
    }
    let gone = state.withLock { state in
      state.settings === settings ? exchange(&state.watching, with: watching) : watching
    }
    gone?.stop()
    return watching != nil
  }

  /// Attempts to watch after a pause, and again until an attempt succeeds, because no notice tells
  /// of a new container, or of the end of a shortage.
  ///
  /// A new series of attempts, at short intervals, ends an earlier one.
  private func watchLater() {
    let number = state.withLock { state in
      state.series += 1
      return state.series
    }
    let note = ChangeNote(self)
    DispatchQueue.global().retry {
      guard let object = note.object, object.state.withLock({ $0.series == number }) else {
        return true
      }
      guard object.watchesNow() else { return false }
      // A change in the meantime was not noticed.
      note.post()
      return true
    }
  }

  /// Watches the group's present container, unless it is watched already; makes no container.
  private func watchesNow() -> Bool {
    let settings = settings(making: false)
    guard !settings.isGone.withLock({ $0 }) else { return false }
    return state.withLock { $0.watching != nil } || watch(settings)
  }

  // MARK: Reading

  /// The arguments with which the program was started, as `-key value`; they precede all other
  /// values.
  private var arguments: [String: Any] { volatileDomain(forName: UserDefaults.argumentDomain) }

  private func value(_ key: String) -> PropertyListValue? {
    if let given = arguments[key], let value = try? PropertyListValue(any: given) { return value }
    let value: PropertyListValue?? = SilentCall.attempt { () throws(WormholeError) in
      try stored?.all()[key]
    }
    return value.flatMap(\.self) ?? Self.registered.withLock { $0[key] }
  }

  override func object(forKey defaultName: String) -> Any? { value(defaultName)?.foundation }

  override func string(forKey defaultName: String) -> String? {
    switch value(defaultName) {
    case .string(let text): text
    case .integer(let number): String(number)
    case .unsigned(let number): String(number)
    case .real(let number): NSNumber(value: number).stringValue
    case .boolean(let isTrue): isTrue ? "1" : "0"
    default: nil
    }
  }

  override func array(forKey defaultName: String) -> [Any]? {
    value(defaultName)?.arrayValue?.map(\.foundation)
  }

  override func stringArray(forKey defaultName: String) -> [String]? {
    guard let values = value(defaultName)?.arrayValue else { return nil }
    let texts = values.compactMap(\.stringValue)
    return texts.count == values.count ? texts : nil
  }

  override func dictionary(forKey defaultName: String) -> [String: Any]? {
    value(defaultName)?.foundationDictionary
  }

  override func data(forKey defaultName: String) -> Data? { value(defaultName)?.dataValue }

  override func integer(forKey defaultName: String) -> Int {
    switch value(defaultName) {
    case .string(let text): (text as NSString).integerValue
    case .boolean(let isTrue): isTrue ? 1 : 0
    case .real(let number): Int(exactly: number.rounded(.towardZero)) ?? 0
    case let value: value?.intValue ?? 0
    }
  }

  override func float(forKey defaultName: String) -> Float { Float(double(forKey: defaultName)) }

  override func double(forKey defaultName: String) -> Double {
    switch value(defaultName) {
    case .integer(let number): Double(number)
    case .unsigned(let number): Double(number)
    case .string(let text): (text as NSString).doubleValue
    case .boolean(let isTrue): isTrue ? 1 : 0
    case let value: value?.doubleValue ?? 0
    }
  }

  override func bool(forKey defaultName: String) -> Bool {
    switch value(defaultName) {
    case .boolean(let isTrue): isTrue
    case .integer(let number): number != 0
    case .unsigned(let number): number != 0
    case .real(let number): number != 0
    case .string(let text): (text as NSString).boolValue
    default: false
    }
  }

  override func url(forKey defaultName: String) -> URL? {
    guard let text = string(forKey: defaultName) else { return nil }
    if let url = URL(string: text), url.scheme != nil { return url }
    return URL(fileURLWithPath: (text as NSString).expandingTildeInPath)
  }

  override func dictionaryRepresentation() -> [String: Any] {
    let values = SilentCall.attempt { try stored?.dictionaryRepresentation() }.flatMap(\.self)
    return Self.registered.withLock { $0 }.merging(values ?? [:]) { $1 }.mapValues(\.foundation)
      .merging(arguments) { $1 }
  }

  // MARK: Writing

  override func set(_ value: Any?, forKey defaultName: String) {
    guard let value else { return change(defaultName, to: nil) }
    let taken: PropertyListValue
    do throws(NotAPropertyList) {
      taken = try PropertyListValue(any: value)
    } catch {
      // A programming error; Foundation ends the program with the same words, without the place.
      fatalError("This value is not supported by set(_:forKey:): \(error)")
    }
    change(defaultName, to: taken)
  }

  override func set(_ value: Int, forKey defaultName: String) {
    change(defaultName, to: .integer(Int64(value)))
  }

  override func set(_ value: Float, forKey defaultName: String) {
    change(defaultName, to: .real(Double(value)))
  }

  override func set(_ value: Double, forKey defaultName: String) {
    change(defaultName, to: .real(value))
  }

  override func set(_ value: Bool, forKey defaultName: String) {
    change(defaultName, to: .boolean(value))
  }

  override func set(_ url: URL?, forKey defaultName: String) {
    let text = url.map { $0.isFileURL ? $0.path : $0.absoluteString }
    change(defaultName, to: text.map { .string($0) })
  }

  override func removeObject(forKey defaultName: String) { change(defaultName, to: nil) }

  private func change(_ key: String, to value: PropertyListValue?) {
    commit { (stored) throws(WormholeError) in try stored.change(key, to: value) }
  }

  /// Sets all keys at once, whether the stored file is missing, intact or damaged.
  private func replace(with values: [String: PropertyListValue]) {
    commit { (stored) throws(WormholeError) in
      if (try? stored.all()) == values { return nil }
      return try stored.replace(with: values)
    }
  }

  /// Changes the settings, in the group's next container if a program has removed the one that is
  /// open.
  ///
  /// - Parameter body: returns the new version; nil without a change.
  private func commit(_ body: (Defaults) throws(WormholeError) -> Int?) {
    let isDone = commit(in: settings(making: true), isLast: false, body)
    // The watch may report the removal a moment later.
    if !isDone { _ = commit(in: settings(making: true), isLast: true, body) }
  }

  /// - Returns: false if a program has removed the container, which the log reports only if this is
  ///   the last attempt.
  private func commit(
    in settings: GroupSettings, isLast: Bool, _ body: (Defaults) throws(WormholeError) -> Int?
  ) -> Bool {
    var isGone = false
    settings.own.begin()
    let version: Int?? = SilentCall.attempt { () throws(WormholeError) -> Int? in
      do throws(WormholeError) {
        return try settings.noticingEnd { () throws(WormholeError) in try body(settings.stored) }
      } catch {
        guard error.code == .notAContainer, !isLast else { throw error }
        isGone = true
        return nil
      }
    }
    if settings.own.end(with: version.flatMap(\.self)) { ChangeNote(self).post() }
    return !isGone
  }

  /// There is no write to wait for: a value that was set is visible to all programs at once.
  override func synchronize() -> Bool { true }

  // MARK: Domains

  override func register(defaults registrationDictionary: [String: Any]) {
    for (key, value) in registrationDictionary {
      do throws(NotAPropertyList) {
        let value = try PropertyListValue(any: value)
        Self.registered.withLock { $0[key] = value }
      } catch {
        fatalError("This value is not supported by register(defaults:): \(error)")
      }
    }
  }

  override func persistentDomain(forName domainName: String) -> [String: Any]? {
    guard domainName == suite else { return super.persistentDomain(forName: domainName) }
    let values = SilentCall.attempt { try stored?.all() }.flatMap(\.self)
    return values.flatMap { $0.isEmpty ? nil : $0.mapValues(\.foundation) }
  }

  override func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
    guard domainName == suite else {
      return super.setPersistentDomain(domain, forName: domainName)
    }
    do throws(NotAPropertyList) {
      replace(with: try PropertyListValue.dictionary(any: domain))
    } catch {
      fatalError(
        """
        The content of 'domain' passed to setPersistentDomain(_:forName:) is not supported: \(error)
        """)
    }
  }

  override func removePersistentDomain(forName domainName: String) {
    guard domainName == suite else { return super.removePersistentDomain(forName: domainName) }
    replace(with: [:])
  }

  override func objectIsForced(forKey key: String) -> Bool { false }
  override func objectIsForced(forKey key: String, inDomain domain: String) -> Bool { false }
}

/// Posts the notification that an object's settings have changed.
// The object is only passed on, to the observers of its notifications. The reference is weak, so a
// watch does not retain the object.
private struct ChangeNote: @unchecked Sendable {
  private(set) weak var object: GroupDefaults?

  init(_ object: GroupDefaults) { self.object = object }

  func post() {
    guard let object else { return }
    NotificationCenter.default.post(name: UserDefaults.didChangeNotification, object: object)
  }
}

/// The settings of a group in one of its containers.
private final class GroupSettings: Sendable {
  let stored: Defaults
  /// Each container counts its versions anew.
  let own = OwnChanges()
  /// Whether a program has removed the container.
  let isGone = Monitor(false)

  init(_ group: String, creates: Bool = true) throws(WormholeError) {
    stored = try SharedOpenings.group(group, creates: creates).defaults(group)
  }

  /// Runs a body, and notes the removal of the container if it makes the body fail.
  func noticingEnd<Result>(
    _ body: () throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    do throws(WormholeError) {
      return try body()
    } catch {
      if error.code == .notAContainer { isGone.withLock { $0 = true } }
      throw error
    }
  }
}
