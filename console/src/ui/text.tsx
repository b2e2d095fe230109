/** Ids, amounts, times, links, code, and the button that copies them. */
import { createLink } from '@tanstack/react-router'
import { type AnchorHTMLAttributes, type ReactNode, useEffect, useState } from 'react'
import { printAmount, printExact, printInFull, printTime } from '../format.ts'
import { t } from '../i18n.ts'

const COPIED_MS = 1_500

/** Shown in place of a missing value. */
export const NONE = '–'

export function CopyButton({ text, label }: { readonly text: string; readonly label?: string }) {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), COPIED_MS)
    return () => clearTimeout(timer)
  }, [isCopied])
  return (
    <button
      type="button"
      className="rounded px-1.5 py-0.5 text-quiet text-xs hover:bg-raised hover:text-ink"
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
    >
      <span aria-live="polite">{isCopied ? t('Copied') : (label ?? t('Copy'))}</span>
    </button>
  )
}

export const Code = ({ children }: { readonly children: ReactNode }) => (
  <code className="font-mono text-xs">{children}</code>
)

/** An id, with a button that copies it. */
export const Id = ({ id }: { readonly id: string | null }) =>
  id === null ? (
    NONE
  ) : (
    <span className="inline-flex max-w-full items-center gap-1">
      <code className="truncate font-mono text-xs" title={id}>
        {id}
      </code>
      <CopyButton text={id} />
    </span>
  )

/** An amount of credits, with its exact value on hover; null if it is not known. */
export const Money = ({ amount }: { readonly amount: string | null }) =>
  amount === null ? (
    NONE
  ) : (
    <span className="tabular whitespace-nowrap" title={t('{amount} credits', { amount: printExact(amount) })}>
      {printAmount(amount)}
    </span>
  )

/** An instant; `none` is shown for null. */
export const Time = ({ at, none = NONE }: { readonly at: string | null; readonly none?: string }) =>
  at === null ? (
    none
  ) : (
    <time dateTime={at} title={printInFull(at)} className="tabular whitespace-nowrap">
      {printTime(at)}
    </time>
  )

interface AnchorProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  /** A link within a sentence is underlined, so that it does not rely on its color. */
  readonly isAmongWords?: boolean
}

export const Anchor = ({ isAmongWords = false, className = '', ...rest }: AnchorProps) => (
  <a className={`text-accent ${isAmongWords ? 'underline' : 'hover:underline'} ${className}`} {...rest} />
)

/** A link to a page of the console. */
export const TextLink = createLink(Anchor)

/** Gives a scrollable area the focus: without it, the arrow keys do not scroll it in every browser. */
export const SCROLLED_BY_KEYS = { tabIndex: 0 } as const

interface CodeBlockProps {
  readonly code: string
  readonly label: string
  /** Wraps a text without spaces, such as a key, instead of scrolling it. */
  readonly isWrapped?: boolean
}

export function CodeBlock({ code, label, isWrapped = false }: CodeBlockProps) {
  const lines = isWrapped ? 'whitespace-pre-wrap break-all' : 'overflow-x-auto'
  return (
    <figure className="overflow-hidden rounded-md border border-line bg-raised">
      <figcaption className="flex items-center justify-between border-line border-b px-3 py-1 text-quiet text-xs">
        {label}
        <CopyButton text={code} />
      </figcaption>
      <pre {...SCROLLED_BY_KEYS} className={`p-3 font-mono text-xs leading-relaxed ${lines}`}>
        {code}
      </pre>
    </figure>
  )
}
