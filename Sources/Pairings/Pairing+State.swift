extension Pairing {
  /// A watch that the phone is paired with.
  public struct Watch: Codable, Hashable, Sendable {
    /// Whether its app is installed.
    public var isAppInstalled = true
    /// Whether the app's complication is on the active face.
    public var isComplicationEnabled = false
    /// Whether phone and watch can hear each other.
    public var isInRange = true
    /// Which of the phone's directories for it is the one of this pairing and this app.
    ///
    /// It never comes again: so what is left of an earlier one is nobody's.
    package var directory = 0

    /// A watch in range, with the app and without its complication.
    public init() {}

    /// What is missing is as usual.
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

  /// All that is known of the pairings of a container.
  public struct State: Codable, Hashable, Sendable {
    /// The name of the watch where nobody has named one.
    public static let usualWatch = "watch"

    /// The watches, by their names.
    public var watches = [usualWatch: Watch()]
    /// The watch that the phone speaks with; nil if it has none.
    public var active: String? = usualWatch
    /// Whether the phone's app is installed.
    public var isPhoneAppInstalled = true
    /// Whether the watch app is one that has no app on the phone at all.
    public var isWatchOnly = false
    /// Whether the phone was started anew and has not been unlocked since.
    public var isPhoneLocked = false
    /// The day that ``budgetUsed`` is of, counted since 1970.
    public var budgetDay = 0
    /// How many complication transfers were made on that day.
    public var budgetUsed = 0

    /// One watch, named `watch`, in range, with both apps.
    public init() {}

    /// What is missing is as usual.
    public init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      watches = try values.decodeIfPresent([String: Watch].self, forKey: .watches) ?? watches
      // That there is none has to be told from that nobody has said which.
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

    /// The watch that the phone speaks with.
    public var activeWatch: Watch? { active.flatMap { watches[$0] } }

    /// How many complication transfers are left on a day; none while there is no complication.
    public func complicationTransfersLeft(day: Int, limit: Int) -> Int {
      guard let watch = activeWatch, watch.isAppInstalled, watch.isComplicationEnabled else {
        return 0
      }
      return max(0, limit - (budgetDay == day ? budgetUsed : 0))
    }
  }
}
