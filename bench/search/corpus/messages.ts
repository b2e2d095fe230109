/** Queries without grades that have to be fast: messages to an agent, and words of every page. */
import { Random } from '../../harness/random.ts'
import type { JudgedQuery, Language } from './entry.ts'
import { fillerSentence } from './prose.ts'

const MESSAGE_CHARS = 1_000
const MESSAGES_PER_LANGUAGE = 15

/** A question at the end of a text of the largest query size. */
export function longMessages(queries: readonly JudgedQuery[], seed: number): string[] {
  const random = new Random(seed)
  return (['en', 'zh'] as const).flatMap((language) => {
    const questions = queries.filter((query) => query.language === language && query.kind === 'question')
    return questions.slice(0, MESSAGES_PER_LANGUAGE).map(({ text }) => longMessage(language, text, random))
  })
}

function longMessage(language: Language, question: string, random: Random): string {
  let story = ''
  while (story.length < MESSAGE_CHARS) story += `${fillerSentence(language, random)} `
  return `${story.slice(0, MESSAGE_CHARS - question.length - 1)} ${question}`
}

export const COMMON_QUERIES: readonly string[] = [
  'the',
  'report',
  'city',
  'company',
  'every year',
  'country capital',
  'history of the language',
  'the national library of the region',
  '的',
  '市场',
  '城市的发展',
  '公司 总部',
  '地区最大的公司',
  '这份报告',
]
