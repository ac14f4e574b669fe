import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeCommand

/// The page of `wormhole serve` in a real browser.
@Suite(.blocking, .notSanitized("the browser is a process of its own"))
struct ContainerPageTests {
  private static let isPossible = Browser.isInstalled(for: "the container's page in a browser")

  @Test func aLongValueIsCut() {
    let text = String(repeating: "x", count: 300)
    #expect(ShownText.of(PropertyListValue.string(text)) == text)
    #expect(ShownText.of(PropertyListValue.string(text + "y")) == text + "… (301 bytes)")
  }

  /// Also if the bound is between two items: a cut value never looks like a complete one.
  @Test func aValueThatIsCutBetweenItsPartsSaysSo() {
    let list = PropertyListValue.array([.integer(1), .integer(2), .integer(3)])
    #expect(ShownText.of(list, most: 9) == "[1, 2, 3]")
    #expect(ShownText.of(list, most: 8) == "[1, 2, 3…")
    #expect(ShownText.of(list, most: 7) == "[1, 2, …")
    let entry = PropertyListValue.dictionary(["k": .string("text")])
    #expect(ShownText.of(entry, most: 11) == "{k: \"text\"}")
    #expect(ShownText.of(entry, most: 10) == "{k: \"text\"…")
    #expect(ShownText.of(entry, most: 9) == "{k: \"text…")
    #expect(ShownText.of(entry, most: 8) == "{k: \"tex… (4 bytes)")
  }

  /// Hostile names and values are text in each place, and nothing of them runs.
  @Test func aContainerIsShownAsText() throws {
    guard Self.isPossible else { return }
    let page = try ServedPage(["--allow-changes"])
    let hostile = "<img src=x onerror=document.title='run'><script>document.title='run'</script>\"'"
    let container = page.container
    try container.channel("film", of: String.self).put(hostile)
    try container.channel("<b>\u{202E}'\"", of: String.self).put("\u{202E}turned")
    let member = try container.join(as: "<i>till", info: ["<u>": hostile])
    defer { member.leave() }
    try container.queue("<u>jobs", of: String.self).send(hostile)
    let browser = try Browser()
    try browser.open(page.address)
    try container.lock("<s>press").hold {
      try browser.wait(
        "['<b>⟨U+202E⟩\\'\"', '<i>till', '<u>jobs', '<s>press', \(Self.literal(hostile))]"
          + ".every(t => document.body.innerText.includes(t))", "all names and values")
      #expect(try browser.value("document.querySelectorAll('main b, main i, img').length") == 0)
      try browser.keepScreenshot("container")
    }
    try browser.wait("document.body.dataset.way === 'live'", "a stream")
    #expect(try browser.value("document.title") == "Wormhole")
    try container.channel("film", of: String.self).put("The General")
    try browser.wait("document.body.innerText.includes('The General')", "the new value")
    #expect(try browser.log().filter { !$0.contains("favicon") } == [])
    // With the keyboard alone: a name, a value, and the button behind them.
    _ = try browser.value("document.getElementById('name').focus()")
    try browser.press("row\u{E004}nine\u{E007}")
    try browser.wait("document.body.innerText.includes('nine')", "the value that was put")
    #expect(try container.channel("row", of: String.self).value == "nine")
    #expect(try browser.value(Self.unlabelled) == 0)
  }

  /// A script that the page does not have itself does not run, whatever puts it there.
  @Test func thePolicyStopsOtherScripts() throws {
    guard Self.isPossible else { return }
    let page = try ServedPage()
    let browser = try Browser()
    try browser.open(page.address)
    _ = try browser.value(
      "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    _ = try browser.value(
      "document.body.append(Object.assign(document.createElement('script'), "
        + "{text: 'document.title=2'}))")
    try eventually("the browser reports it") {
      try browser.log().contains { $0.contains("Content Security Policy") }
    }
    #expect(try browser.value("document.title") == "Wormhole")
  }

  @Test func aMissingOrWrongTokenIsRefused() throws {
    guard Self.isPossible else { return }
    let page = try ServedPage()
    let browser = try Browser()
    for path in ["", "0123456789abcdef0123456789abcdef/"] {
      try browser.open("http://127.0.0.1:\(page.port)/\(path)")
      #expect(
        try browser.value("document.body.innerText")
          .stringValue?.contains("the token is missing or wrong") == true)
    }
  }

  /// Ten pages of one browser, and as many streams of other clients as there may be.
  @Test func tenPagesAndTwoHundredStreams() throws {
    guard Self.isPossible else { return }
    let page = try ServedPage()
    let film = page.container.channel("film", of: String.self)
    let browser = try Browser()
    for number in 0..<10 {
      if number > 0 { try browser.openAnother("window") }
      try browser.open(page.address)
    }
    try film.put("The General")
    var ways: [String] = []
    for window in try browser.windows {
      try browser.switchTo(window)
      try browser.wait("document.body.innerText.includes('The General')", "the value")
      ways.append(try browser.value("document.body.dataset.way").stringValue ?? "")
    }
    #expect(ways.count == 10)
    #expect(ways.count { $0 == "live" } <= 4)
    #expect(ways.allSatisfy { ["live", "asks every two seconds"].contains($0) }, "\(ways)")
    var streams: [WebConnection] = []
    var refused = 0
    for _ in 0..<201 {
      let stream = try WebConnection(port: page.port)
      try stream.ask(page.path + "events")
      let status = try stream.reply().status
      if status == 200 { streams.append(stream) } else { refused += status == 503 ? 1 : 1000 }
    }
    // The pages of the browser have some of the 200.
    #expect(streams.count + refused == 201)
    #expect((1...6).contains(refused))
    try film.put("Baby Face Morgan")
    for window in try browser.windows {
      try browser.switchTo(window)
      try browser.wait("document.body.innerText.includes('Baby Face Morgan')", "the new value")
    }
  }

  /// The number of elements that a screen reader could not name.
  static let unlabelled = """
    [...document.querySelectorAll('button, input, section, svg[role]')].filter(e =>
      !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby')
        || (e.labels && e.labels.length) || (e.textContent || '').trim())).length
    """

  private static func literal(_ text: String) throws -> String {
    try JSONPropertyList.encode(.string(text))
  }
}
