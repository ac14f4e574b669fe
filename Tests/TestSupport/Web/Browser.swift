internal import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// A window of a real browser, driven over WebDriver: Debian's chromium with its driver.
///
/// WebDriver is JSON over HTTP: each command is a request to the driver, and its reply contains a
/// value or an error.
package final class Browser {
  private let driver: Running
  private let connection: WebConnection
  private let folder: TemporaryDirectory
  private var session = ""

  /// The error of a command, in the driver's words.
  package struct Refused: Error, CustomStringConvertible {
    package let description: String
  }

  /// Whether both programs are installed; prints a skip otherwise.
  package static func isInstalled(for what: String) -> Bool {
    for program in ["chromium", "chromedriver"] where Programs.installed(program) == nil {
      skip(what, missing: program)
      return false
    }
    return true
  }

  package init() throws {
    folder = try TemporaryDirectory()
    // The browser writes below its home and the directory for temporary files.
    let driver = try Running(
      "chromedriver", ["--port=0"],
      environment: ["HOME=\(folder.path)", "TMPDIR=\(folder.path)"])
    self.driver = driver
    connection = try WebConnection(port: Self.port(of: driver))
    let arguments = [
      "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--window-size=1100,1000", "--hide-scrollbars", "--no-first-run", "--no-proxy-server",
      "--disable-background-networking", "--disable-component-update",
      "--user-data-dir=\(folder.path)/profile",
    ]
    let reply = try command(
      "POST", nil,
      [
        "capabilities": [
          "alwaysMatch": [
            "goog:chromeOptions": ["args": .array(arguments.map { .string($0) })],
            "goog:loggingPrefs": ["browser": "ALL"],
          ]
        ]
      ])
    guard let id = reply["sessionId"]?.stringValue else {
      throw Refused(description: "no session: \(reply)")
    }
    session = id
  }

  deinit { _ = try? command("DELETE", "") }

  /// Waits until the driver listens; an error has what the driver printed.
  private static func port(of driver: Running) throws -> Int {
    do {
      return try eventually("the driver listens") { () -> Int? in
        guard
          let line = try driver.output.split(separator: "\n").first(where: {
            $0.contains("started successfully on port ")
          })
        else { return nil }
        return line.split(separator: " ").last.flatMap { Int($0.filter(\.isNumber)) }
      }
    } catch let error as TooLate {
      let printed = try driver.output + driver.errors
      throw Refused(description: "\(error); the driver printed \(printed.debugDescription)")
    }
  }

  /// - Parameter path: below the session; nil for a new session.
  private func command(
    _ method: String, _ path: String?, _ body: PropertyListValue? = nil
  ) throws -> PropertyListValue {
    let words = ["session"] + (path.map { [session, $0] } ?? [])
    let path = words.filter { !$0.isEmpty }.reduce("") { "\($0)/\($1)" }
    try connection.ask(
      path, method: method, ["Content-Type: application/json"],
      body: try body.map { try JSONPropertyList.encode($0) } ?? (method == "POST" ? "{}" : nil))
    let reply = try connection.reply()
    let value = try JSONPropertyList.decode(Array(reply.body.utf8))["value"] ?? ""
    guard reply.status == 200 else {
      throw Refused(description: value["message"]?.stringValue ?? reply.body)
    }
    return value
  }

  /// Opens an address in the current window.
  package func open(_ address: String) throws {
    _ = try command("POST", "url", ["url": .string(address)])
  }

  /// Opens a new tab or window, and makes it the current one.
  package func openAnother(_ kind: String = "tab") throws {
    let made = try command("POST", "window/new", ["type": .string(kind)])
    try switchTo(made["handle"]?.stringValue ?? "")
  }

  package var windows: [String] {
    get throws {
      try command("GET", "window/handles").arrayValue?.compactMap(\.stringValue) ?? []
    }
  }

  package func switchTo(_ window: String) throws {
    _ = try command("POST", "window", ["handle": .string(window)])
  }

  /// Returns the value of an expression of JavaScript in the page.
  package func value(_ expression: String) throws -> PropertyListValue {
    // The driver's null is no value here.
    try command(
      "POST", "execute/sync",
      ["script": .string("const v = (\(expression)); return v == null ? false : v"), "args": []])
  }

  /// Waits until an expression is true.
  package func wait(_ expression: String, _ what: String) throws {
    try eventually("\(what) in the page \(try value("document.body.innerText"))") {
      try value("!!(\(expression))") == true
    }
  }

  /// Clicks the element of an ID, as a person would: it must be visible and enabled.
  package func click(_ id: String) throws {
    try eventually("a click on \(id)") { () -> Bool in
      do {
        let found = try command(
          "POST", "element", ["using": "css selector", "value": .string("[id='\(id)']")])
        let element = found.dictionaryValue?.values.first?.stringValue ?? ""
        guard try command("GET", "element/\(element)/enabled") == true else {
          return false
        }
        _ = try command("POST", "element/\(element)/click")
        return true
      } catch is Refused {
        // The page may have replaced the element in the meantime.
        return false
      }
    }
  }

  /// Presses keys: characters, or the codes of WebDriver for other keys.
  package func press(_ keys: String) throws {
    let actions = keys.flatMap { key -> [PropertyListValue] in
      [
        ["type": "keyDown", "value": .string(String(key))],
        ["type": "keyUp", "value": .string(String(key))],
      ]
    }
    _ = try command(
      "POST", "actions",
      ["actions": [["type": "key", "id": "keys", "actions": .array(actions)]]])
  }

  /// The messages that the browser has logged since the last call.
  package func log() throws -> [String] {
    let entries = try command("POST", "se/log", ["type": "browser"]).arrayValue
    return (entries ?? []).compactMap { $0["message"]?.stringValue }
  }

  private static var build: String { Programs.source + "/.build" }

  /// The path of a picture that was kept.
  package static func path(ofScreenshot name: String) -> String {
    "\(build)/screenshots/\(name).png"
  }

  /// Keeps a picture of the window as what the test saw, in `.build/screenshots`.
  package func keepScreenshot(_ name: String) throws {
    guard let text = try command("GET", "screenshot").stringValue,
      case .data(let data)? = try? JSONPropertyList.decode(Array(#"{"$data":"\#(text)"}"#.utf8))
    else { throw Refused(description: "no screenshot") }
    let build = try Descriptor.open(path: Self.build, [.readOnly, .directory])
    if (try? build.status(of: "screenshots")) == nil {
      try build.makeDirectory("screenshots", mode: 0o755)
    }
    let file = try build.open(
      "screenshots/\(name).png", [.writeOnly, .create, .truncate], mode: 0o644)
    try file.writeFully(Array(data))
  }
}
