extension Pairing {
  /// A watch that the phone is paired with.
  public struct Watch: Codable, Hashable, Sendable {
    /// Whether its app is installed.
    public var isAppInstalled = true
    /// Whether the app's complication is on the active face.
    public var isComplicationEnabled = false
    /// Whether phone and watch can reach each other.
    public var isInRange = true
    /// The number of the phone's directory for this pairing and this app.
    ///
    /// The number is never used again: so the remains of an earlier pairing belong to no app.
    package var directory = 0

    /// A watch in range, with the app and without its complication.
    public init() {}

    /// Decodes a watch; missing keys have the usual values.
    public init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      func value(_ key: CodingKeys, _ usual: Bool) throws -> Bool {
        try values.decodeIfPresent(Bool.self, forKey: key) ?? usual
      }
      isAppInstalled = try value(.isAppInstalled, true)
      isComplicationEnabled = try value(.isComplicationEnabled, false)
      isInRange = try value(.isInRange, true)
      directory = try values.decodeIfPresent(Int.self, forKey: .directory) ?? 0
    }

    mutating func renewDirectory() { directory = .random(in: 1 ... .max) }
  }

  /// The whole state of the pairings of a container.
  public struct State: Codable, Hashable, Sendable {
    /// The name of the watch if no program has named one.
    public static let usualWatch = "watch"

    /// The watches, by their names.
    public var watches = [usualWatch: Watch()]
    /// The watch that the phone communicates with; nil if the phone has none.
    public var active: String? = usualWatch
    /// Whether the phone's app is installed.
    public var isPhoneAppInstalled = true
    /// Whether the watch app is independent, without any app on the phone.
    public var isWatchOnly = false
    /// Whether the phone was restarted and has not been unlocked since.
    public var isPhoneLocked = false
    /// The day of ``budgetUsed``, counted since 1970.
    public var budgetDay = 0
    /// The number of complication transfers made on that day.
    public var budgetUsed = 0

    /// Creates the state with one watch, named `watch`, in range, with both apps.
    public init() {}

    /// Decodes a state; missing keys have the usual values.
    public init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      watches = try values.decodeIfPresent([String: Watch].self, forKey: .watches) ?? watches
      // A missing key can mean that the phone has no watch, or that no program has named the active
      // watch.
      active =
        try values.decodeIfPresent(String.self, forKey: .active)
        ?? (watches.count == 1 && !values.contains(.watches) ? Self.usualWatch : nil)
      func flag(_ key: CodingKeys, _ usual: Bool) throws -> Bool {
        try values.decodeIfPresent(Bool.self, forKey: key) ?? usual
      }
      isPhoneAppInstalled = try flag(.isPhoneAppInstalled, true)
      isWatchOnly = try flag(.isWatchOnly, false)
      isPhoneLocked = try flag(.isPhoneLocked, false)
      budgetDay = try values.decodeIfPresent(Int.self, forKey: .budgetDay) ?? 0
      budgetUsed = max(0, try values.decodeIfPresent(Int.self, forKey: .budgetUsed) ?? 0)
    }

    /// The watch that the phone communicates with.
    public var activeWatch: Watch? { active.flatMap { watches[$0] } }

    /// Returns how many complication transfers are left on a day; 0 while no complication is
    /// enabled.
    public func complicationTransfersLeft(day: Int, limit: Int) -> Int {
      guard let watch = activeWatch, watch.isAppInstalled, watch.isComplicationEnabled else {
        return 0
      }
      return max(0, limit - (isBudget(for: day) ? budgetUsed : 0))
    }

    /// Whether the current budget is the budget for transfers of a day.
    ///
    /// A process may read the clock just before midnight, and take its transfer after another
    /// process has begun the next day's budget: the transfer counts for the next day.
    func isBudget(for day: Int) -> Bool { [0, 1].contains(budgetDay &- day) }
  }
}
