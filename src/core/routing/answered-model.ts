/** Decides whether the model that an upstream names in its answer is the requested one. */

/** Suffixes that vendors add to a model's name for one snapshot of it, or for its newest. */
const SNAPSHOT = /[-:](latest|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3})$/

/** Versions behind an `@`, where platforms write them, that leave the snapshot open. */
const OPEN = ['default', 'latest']

interface NamedModel {
  readonly name: string
  /** Empty for a name that leaves the snapshot to the vendor. */
  readonly snapshot: string
}

function readName(text: string): NamedModel {
  // The part before the last slash names the vendor or the category.
  const [name = '', version = ''] = text
    .slice(text.lastIndexOf('/') + 1)
    .toLowerCase()
    .split('@')
  const found = SNAPSHOT.exec(name)
  if (found === null) return { name, snapshot: OPEN.includes(version) ? '' : version }
  return { name: name.slice(0, found.index), snapshot: found[1] === 'latest' ? '' : found[1]! }
}

/** Returns true for equal names, and for a name of one snapshot beside one that leaves the snapshot open. */
export function isRequestedModel(asked: string, answered: string): boolean {
  if (asked === answered) return true
  const [one, other] = [readName(asked), readName(answered)]
  if (one.name !== other.name) return false
  return one.snapshot === other.snapshot || one.snapshot === '' || other.snapshot === ''
}
