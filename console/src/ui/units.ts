/** The translated names of units, capabilities and endpoints. */
import type { PublicModel } from '../../../schemas/accounts/models.ts'
import { t } from '../i18n.ts'

type Pricing = NonNullable<PublicModel['pricing']>
type Unit = Pricing['unit']

export function unitName(unit: Unit): string {
  const names: Readonly<Record<Unit, string>> = {
    '1M_tokens': t('million tokens'),
    image: t('image'),
    second: t('second'),
    minute: t('minute'),
    search: t('search'),
    generation: t('generation'),
    '1000_characters': t('1,000 characters'),
    call: t('call'),
    task: t('task'),
  }
  return names[unit]
}

/**
 * Prints what a call used.
 * @param unit of the price of its model; undefined: the model is not in the catalog
 * @param type of what the call makes, such as `video`
 */
export function printUnits(count: number, unit: Unit | undefined, type: string): string {
  switch (unit) {
    case 'image':
      return t('{count, plural, one {# image} other {# images}}', { count })
    case 'second':
    case 'minute':
      return t('{count, plural, one {# second} other {# seconds}}', { count })
    case 'search':
      return t('{count, plural, one {# search} other {# searches}}', { count })
    case '1000_characters':
      return t('{count, plural, one {# character} other {# characters}}', { count })
    default:
      return `${count} ${type}`
  }
}

export function capabilityName(capability: keyof PublicModel['capabilities']): string {
  const names: Readonly<Record<typeof capability, string>> = {
    vision: t('reads images'),
    function_tools: t('functions'),
    web_search: t('web search'),
    image_generation: t('generates images'),
    reasoning: t('reasoning'),
    code_interpreter: t('code interpreter'),
    computer_use: t('computer use'),
    file_search: t('file search'),
    maps: t('maps'),
    mcp: 'MCP',
    tool_search: t('tool search'),
    url_context: t('reads web pages'),
  }
  return names[capability]
}

export function endpointName(type: PublicModel['endpoint_type']): string {
  if (type === null) return t('Chat')
  const names: Readonly<Record<typeof type, string>> = {
    images_generations: t('Images'),
    videos_generations: t('Videos'),
    contents_generations_tasks: t('Videos'),
    music_generations: t('Music'),
    audio_speech: t('Speech'),
    audio_voices: t('Voices'),
    transcripts_extract: t('Transcripts'),
    videos_avatars: t('Avatars'),
    clip_subtitles: t('Subtitles'),
    clip_compose: t('Composed clips'),
    embeddings: t('Embeddings'),
    rerank: t('Rerank'),
    audio_transcriptions: t('Transcriptions'),
  }
  return names[type]
}
