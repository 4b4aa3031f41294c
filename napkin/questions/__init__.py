"""One module per question: settings in, an Answer out."""
