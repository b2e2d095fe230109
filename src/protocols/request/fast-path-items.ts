/** Checks values on the tape: what items of the lists of requests are made of. */
import {
  ARRAY,
  endOf,
  FieldFinder,
  foundIn,
  kindOf,
  NULL,
  nodeAfter,
  OBJECT,
  STRING,
  startOf,
} from '../../core/json/scanner/tape.ts'

/** Absent, or null. */
export const isMissing = (node: number): boolean => node === 0 || kindOf(node) === NULL
export const isText = (node: number): boolean => node !== 0 && kindOf(node) === STRING
export const isFullText = (node: number): boolean => isText(node) && endOf(node) > startOf(node)
export const isObjectAt = (node: number): boolean => node !== 0 && kindOf(node) === OBJECT

/** How many items the list has, or -1 for what is no list or has one that is not as it should be. */
export function countOf(list: number, isItem: (node: number) => boolean): number {
  if (list === 0 || kindOf(list) !== ARRAY) return -1
  const end = nodeAfter(list)
  let count = 0
  for (let item = list + 1; item < end; item = nodeAfter(item)) {
    if (!isItem(item)) return -1
    count++
  }
  return count
}

export const isListOf = (list: number, isItem: (node: number) => boolean): boolean =>
  countOf(list, isItem) >= 0

const TYPED = new FieldFinder(['type'])

/** The type of the object, or 0. */
export function typeOf(node: number): number {
  if (!TYPED.find(node)) return 0
  const type = foundIn(TYPED.place.type)
  return isText(type) ? type : 0
}

export const isTyped = (node: number): boolean => typeOf(node) !== 0
