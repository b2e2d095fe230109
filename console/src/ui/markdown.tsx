/** Renders Markdown. HTML in it is shown as text: nothing of it runs, and nothing is loaded from other hosts. */
import Markdown, { type Components, type Options } from 'react-markdown'
import remarkGfm from 'remark-gfm'

const COMPONENTS: Components = {
  a: ({ href = '', children }) => (
    <a href={href} target="_blank" rel="noreferrer" className="text-accent underline">
      {children}
    </a>
  ),
  img: ({ alt = '', src }) => (
    <a href={String(src)} target="_blank" rel="noreferrer" className="text-accent underline">
      {alt || String(src)}
    </a>
  ),
}

interface MarkdownTextProps {
  readonly text: string
  readonly plugins?: Options['remarkPlugins']
  readonly components?: Components
}

export const MarkdownText = ({ text, plugins, components }: MarkdownTextProps) => (
  <div className="markdown break-words">
    <Markdown remarkPlugins={[remarkGfm, ...(plugins ?? [])]} components={{ ...COMPONENTS, ...components }}>
      {text}
    </Markdown>
  </div>
)
