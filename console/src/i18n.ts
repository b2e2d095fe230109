/** Languages. English texts are the ids; choosing another language loads its translations. */
import { i18n } from '@lingui/core'
import { compileMessage } from '@lingui/message-utils/compileMessage'

export const LANGUAGES = { en: 'English', zh: '中文' } as const
export type Language = keyof typeof LANGUAGES

const STORED = 'tollgate-language'

i18n.setMessagesCompiler(compileMessage)

const isLanguage = (text: string | null): text is Language => text !== null && Object.hasOwn(LANGUAGES, text)

/** Returns the language that the user chose, else the browser's, else English. */
export function choosePreferredLanguage(): Language {
  const stored = localStorage.getItem(STORED)
  if (isLanguage(stored)) return stored
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

export async function activateLanguage(language: Language): Promise<void> {
  const messages = language === 'zh' ? (await import('./locales/zh.json')).default : {}
  i18n.load(language, messages)
  i18n.activate(language)
  document.documentElement.lang = language
}

export async function chooseLanguage(language: Language): Promise<void> {
  localStorage.setItem(STORED, language)
  await activateLanguage(language)
}

/** Translates a text. The router renders a page again when the language changes. */
export const t = (message: string, values?: Record<string, unknown>): string => i18n._(message, values)
