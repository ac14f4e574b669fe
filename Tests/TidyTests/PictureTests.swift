import TestTraits
import Testing

/// Each picture of the articles is a small SVG that needs no other file, and an article shows it.
@Suite(.blocking, .notSanitized("it reads text")) struct PictureTests {
  @Test func everyPictureIsWellFormedAndNeedsNoOtherFile() throws {
    let pictures = try House.files().filter(\.isPicture)
    #expect(pictures.count > 2, "the pictures were found")
    for picture in pictures {
      #expect(faults(of: picture.lines.joined(separator: "\n")) == [], "\(picture.path)")
    }
  }

  @Test func everyPictureIsShownAndEveryImageIsThere() throws {
    let files = try House.files()
    let paths = Set(files.map(\.path))
    var shown: Set<String> = []
    for page in files where page.path.hasSuffix(".md") {
      let folder = page.path.split(separator: "/").dropLast().joined(separator: "/")
      let isArticle = folder.hasSuffix(".docc")
      let place = isArticle ? "\(folder)/Resources/" : folder.isEmpty ? "" : "\(folder)/"
      for image in images(in: page) {
        let path = place + image
        #expect(paths.contains(path), "\(page.path) shows \(image)")
        if isArticle { shown.insert(path) }
      }
    }
    for picture in files where picture.isPicture && !shown.contains(picture.path) {
      Issue.record("no article shows \(picture.path)")
    }
  }

  /// README opens with a moving picture, which `Fixtures/python/draw_office.py` draws from a real
  /// run.
  @Test func theMovingPictureNeedsNoOtherFile() throws {
    let files = try House.files()
    let page = try #require(files.first { $0.path == "README.md" })
    #expect(page.lines[2].hasPrefix("!["))
    let path = try #require(images(in: page).first)
    let picture = try #require(files.first { $0.path == path }).lines.joined(separator: "\n")
    #expect(picture.utf8.count < 200 << 10)
    #expect(faults(of: picture).filter { $0 != "8 KB or more" } == [])
    #expect(picture.contains("@keyframes") && picture.contains("prefers-reduced-motion"))
    #expect(!picture.contains("url(") && !picture.contains("@import"))
  }

  @Test func aPictureWithoutFaultsHasNone() {
    #expect(faults(of: Self.picture()) == [])
    let content = "<text x=\"1\">a &lt; b</text>\n<path d=\"M0 0\"/>"
    #expect(faults(of: Self.picture(content: content)) == [])
  }

  /// Each fault is found, and nothing else is reported.
  @Test(arguments: [
    ("</g>", "an element is not closed, or closed twice"),
    ("<g><text></g></text>", "an element is not closed, or closed twice"),
    ("<text x=1/>", "'<', '>' or '&' outside of an element"),
    ("a < b", "'<', '>' or '&' outside of an element"),
    ("a & b", "'<', '>' or '&' outside of an element"),
    ("<a href=\"http:\"/>", "an address"),
    ("<script></script>", "a script"),
  ])
  func aFaultIsFound(_ content: String, _ fault: String) {
    #expect(faults(of: Self.picture(content: content)) == [fault])
  }

  @Test func aLargePictureAndAPictureWithoutADescriptionAreFound() {
    let long = String(repeating: "a", count: 8192)
    #expect(faults(of: Self.picture(content: long)) == ["8 KB or more"])
    #expect(faults(of: "<svg></svg>") == ["no title", "no desc"])
  }

  @Test func imagesAreFoundByTheirPaths() {
    let page = SourceFile("A.md", "![A b, c.](a.svg) [d](e.md)\n![F](g/h.svg)\n")
    #expect(images(in: page) == ["a.svg", "g/h.svg"])
  }

  // In two parts, because no page on a network is named in the sources.
  private static let nameSpace = "xmlns=\"http:" + "//www.w3.org/2000/svg\""

  private static func picture(content: String = "") -> String {
    "<svg \(nameSpace)><title>A</title><desc>B</desc>\(content)</svg>"
  }

  private func images(in page: SourceFile) -> [String] {
    page.lines.flatMap { line in
      line.matches(of: #/!\[[^\]]+\]\(([^)]+)\)/#).map { String($0.output.1) }
    }
  }

  private func faults(of text: String) -> [String] {
    var faults: [String] = []
    if text.utf8.count >= 8192 { faults.append("8 KB or more") }
    for element in ["title", "desc"] where !text.contains("</\(element)>") {
      faults.append("no \(element)")
    }
    if text.replacing(Self.nameSpace, with: "").contains("http") { faults.append("an address") }
    if text.contains("<script") { faults.append("a script") }
    return faults + faultsOfForm(in: text)
  }

  /// Whether each element is closed inside the element in which it begins.
  ///
  /// A parser of XML would need another module of Foundation; pictures need only a part of XML.
  private func faultsOfForm(in text: String) -> [String] {
    let tag = #/<(/?)([A-Za-z]+)((?:\s+[A-Za-z\-]+="[^"<>]*")*)\s*(/?)>/#
    var open: [Substring] = []
    var isNested = true
    for match in text.matches(of: tag) {
      let name = match.output.2
      if !match.output.1.isEmpty {
        isNested = open.popLast() == name && isNested
      } else if match.output.4.isEmpty {
        open.append(name)
      }
    }
    var faults: [String] = []
    if !isNested || !open.isEmpty { faults.append("an element is not closed, or closed twice") }
    let rest = text.replacing(tag, with: "").replacing(#/&(?:lt|gt|amp);/#, with: "")
    if rest.contains(where: { "<>&".contains($0) }) {
      faults.append("'<', '>' or '&' outside of an element")
    }
    return faults
  }
}

extension SourceFile {
  fileprivate var isPicture: Bool { path.contains(".docc/") && path.hasSuffix(".svg") }
}
