/** What everybody may use of the simulated studio: avatars, voices, clip templates and their categories. */

import { type OpenedRequest, openedWith, type ReceivedRequest, SimulatedFailure } from '../../dialect.ts'
import { PRESET_VOICES } from '../../voice-list.ts'

export const PRESET_AVATARS = [
  { id: 'sim-face-mei', name: 'Mei' },
  { id: 'sim-face-jon', name: 'Jon' },
  { id: 'sim-face-noor', name: 'Noor' },
] as const

const CATEGORIES = [
  { cate_id: 'sim-cate-talk', cate_name: 'Talk', sort: 1 },
  { cate_id: 'sim-cate-food', cate_name: 'Food', sort: 2 },
] as const

const STYLES = [
  { style_id: 'sim-style-bold', name: 'Bold', scene: 'vertical', category: CATEGORIES[0] },
  { style_id: 'sim-style-quiet', name: 'Quiet', scene: 'horizontal', category: CATEGORIES[0] },
  { style_id: 'sim-style-crust', name: 'Crust', scene: 'vertical', category: CATEGORIES[1] },
] as const

const COVER = { kind: 'png', widthPixels: 270, heightPixels: 480 } as const
const DEMO = { kind: 'mp4', widthPixels: 270, heightPixels: 480, seconds: 3 } as const

export function isTemplate(id: string): boolean {
  return STYLES.some((style) => style.style_id === id)
}

export function openPresets(request: ReceivedRequest): OpenedRequest {
  const kind = request.query.get('kind')
  if (kind !== 'avatar' && kind !== 'voice')
    throw new SimulatedFailure(400, 'invalid_request', 'kind: it is avatar or voice.', { param: 'kind' })
  const voices = PRESET_VOICES.map(({ id, name }) => ({ id, name }))
  return openedWith({ presets: kind === 'avatar' ? PRESET_AVATARS : voices })
}

export function openTemplates({ query, world, origin }: ReceivedRequest): OpenedRequest {
  const category = query.get('cate_id')
  const shown = STYLES.filter((style) => category === null || style.category.cate_id === category)
  const list = shown.map(({ style_id, name, scene, category: { cate_name } }, index) => {
    const options = { origin, name: style_id, readyAtMs: 0, directives: {} }
    const cover_url = world.files.link({ ...COVER, seed: index }, options)
    const demo_url = world.files.link({ ...DEMO }, options)
    return { style_id, name, cover_url, demo_url, cate_name, scene }
  })
  return openedWith({ list })
}

export function openCategories(): OpenedRequest {
  return openedWith({ list: CATEGORIES })
}
