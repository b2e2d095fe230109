/**
 * Public resources of a provider on our own contract: presets, templates of clips. See docs/upstream-task.md, "What
 * everybody may use".
 */
import { z } from 'zod'
import type { ChannelEntry } from '../../../../schemas/config/catalog.ts'
import type { MediaAnswer, MediaRequest, Preset, PresetKind, PresetSource } from '../adapter.ts'
import { isSuccess, looseId, looseText, readFields } from '../answer.ts'
import { getRequest } from '../request.ts'

/** How long a provider may take for each of these answers. */
export const CATALOG_TIMEOUT_MS = 15_000
/** How long an answer may be shown again. */
export const CATALOG_TTL_MS = 60_000

/**
 * Returns the items of a list that the schema reads. Null: the upstream failed to answer; empty: it has no such
 * request.
 */
function listIn<Item extends object>(
  answer: MediaAnswer,
  field: string,
  schema: z.ZodType<Item>,
): readonly Item[] | null {
  if (answer.status === 404 || answer.status === 501) return []
  const listed = isSuccess(answer) ? readFields(answer)?.[field] : null
  return Array.isArray(listed) ? listed.flatMap((item) => schema.safeParse(item).data ?? []) : null
}

const requiredId = looseId.pipe(z.string())
const textOrEmpty = looseText.transform((text) => text ?? '')

const preset = z
  .looseObject({ id: requiredId, name: looseText })
  .transform(({ id, name }): Preset => ({ id, name: name ?? id }))

export const taskPresets = (kind: PresetKind): PresetSource => ({
  request: (channel) => getRequest(channel, `/presets?kind=${kind}`),
  read: (answer) => listIn(answer, 'presets', preset),
})

export interface ClipTemplate {
  readonly style_id: string
  readonly name: string
  readonly cover_url: string
  readonly demo_url: string
  readonly cate_name: string
  readonly scene: string
}

const clipTemplate = z
  .looseObject({
    style_id: requiredId,
    name: textOrEmpty,
    cover_url: textOrEmpty,
    demo_url: textOrEmpty,
    cate_name: textOrEmpty,
    scene: textOrEmpty,
  })
  .transform(({ style_id, name, cover_url, demo_url, cate_name, scene }): ClipTemplate => {
    return { style_id, name, cover_url, demo_url, cate_name, scene }
  })

/** Returns the request for all templates, or those of one category. */
export const clipTemplatesRequest = (channel: ChannelEntry, categoryId: string | null): MediaRequest =>
  getRequest(
    channel,
    categoryId === null ? '/clip-templates' : `/clip-templates?cate_id=${encodeURIComponent(categoryId)}`,
  )

/** Returns the templates. Null: the upstream failed to answer. */
export const readClipTemplates = (answer: MediaAnswer): readonly ClipTemplate[] | null =>
  listIn(answer, 'list', clipTemplate)

export interface ClipCategory {
  readonly cate_id: string
  readonly cate_name: string
  readonly sort: number
}

const clipCategory = z
  .looseObject({ cate_id: requiredId, cate_name: textOrEmpty, sort: z.number().catch(0).default(0) })
  .transform(({ cate_id, cate_name, sort }): ClipCategory => ({ cate_id, cate_name, sort }))

export const clipCategoriesRequest = (channel: ChannelEntry): MediaRequest =>
  getRequest(channel, '/clip-templates/categories')

/** Returns the categories in the order of `sort`. Null: the upstream failed to answer. */
export const readClipCategories = (answer: MediaAnswer): readonly ClipCategory[] | null =>
  listIn(answer, 'list', clipCategory)?.toSorted((a, b) => a.sort - b.sort) ?? null
