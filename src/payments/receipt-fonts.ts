/**
 * Fonts of receipts. A name may be in any script, and a receipt loses no character: a line is set in the first font that
 * has all of it, else each character in the first that has it. One that no font has is named by its code point.
 */
import { fileURLToPath } from 'node:url'
import { normalizeText } from '../core/normalize-text.ts'

/** @param entry the entry of the package, beside whose folder its fonts are */
const findFontFile = (entry: string, file: string): string =>
  fileURLToPath(entry.replace(/dist\/[^/]*$/, `fonts/${file}`))

/** Chinese with the commonest Latin, Greek and Cyrillic; the other letters of Europe and Vietnam; Korean. */
const FILES = [
  findFontFile(import.meta.resolve('@embedpdf/fonts-sc'), 'NotoSansHans-Regular.otf'),
  findFontFile(import.meta.resolve('@embedpdf/fonts-latin'), 'NotoSans-Regular.ttf'),
  findFontFile(import.meta.resolve('@embedpdf/fonts-kr'), 'NotoSansKR-Regular.otf'),
]

export const [MAIN_FONT = ''] = FILES

/** A part of a line, and the file of its font. */
interface Run {
  readonly text: string
  readonly font: string
}

/** @param has returns whether a font has a character */
export function splitRuns(line: string, has: (font: string, character: string) => boolean): Run[] {
  // Composed: fonts have the letter with its mark, and the syllable of its parts.
  const characters = [...normalizeText(line, 'NFC')]
  const whole = FILES.find((font) => characters.every((character) => has(font, character)))
  if (whole !== undefined) return [{ text: characters.join(''), font: whole }]
  const runs: Run[] = []
  for (const character of characters) {
    const found = FILES.find((font) => has(font, character))
    const font = found ?? MAIN_FONT
    const text = found === undefined ? printCodePoint(character) : character
    const last = runs.at(-1)
    if (last?.font === font) runs[runs.length - 1] = { text: last.text + text, font }
    else runs.push({ text, font })
  }
  return runs
}

const printCodePoint = (character: string): string =>
  `[U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`
