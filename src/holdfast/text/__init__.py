"""What every stage needs to know about text: cleaning, tokens, words, sentences, dates.  All pure."""
