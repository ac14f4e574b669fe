extension LinkLetter {
  init(_ name: MessageName, to: String) {
    kind = .guaranteed
    self.name = name.text
    from = if case .member(let sender) = name.sender { sender } else { "" }
    self.to = to
    isUrgent = name.isUrgent
  }

  init(_ name: LiveName, from: String?, to: String) {
    kind =
      switch name.letter {
      case .message, .confirmed: .immediate
      case .question: .question
      case .answer, .yes, .no: .answer
      }
    self.name = name.text
    self.from = from ?? ""
    self.to = to
    isUrgent = false
  }
}
