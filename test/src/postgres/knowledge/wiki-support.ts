import { createHash } from 'node:crypto'
import type { Knowledge } from '../../../../src/postgres/knowledge/repository.ts'
import type { PageDraft } from '../../../../src/postgres/knowledge/types.ts'

/** A draft as its file would give it; the hash follows from the rest. */
export function draft(path: string, more: Partial<PageDraft> = {}): PageDraft {
  const page = {
    path,
    title: path.replace(/\.md$/, ''),
    summary: '',
    body: `Body of ${path}`,
    text: `Body of ${path}`,
    tags: [],
    aliases: [],
    links: [],
    confidence: '',
    needsReview: false,
    source: null,
    ...more,
  }
  return { hash: createHash('sha256').update(JSON.stringify(page)).digest(), ...page }
}

/** The folder that has just these pages, imported as the command does: unchanged ones are left out. */
export async function importAll(
  { knowledge }: { readonly knowledge: Pick<Knowledge, 'readPageHashes' | 'importPages'> },
  baseId: string,
  pages: readonly PageDraft[],
  prune = false,
) {
  const known = await knowledge.readPageHashes(baseId)
  const changed = pages.filter(({ path, hash }) => !known.get(path)?.equals(hash))
  async function* drafts() {
    yield changed
  }
  const present = new Map(pages.map(({ path, hash }) => [path, hash]))
  return knowledge.importPages({ baseId, drafts: drafts(), present, prune })
}
