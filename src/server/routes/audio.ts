/** Routes of music, speech, voices and transcripts. */
import { type MusicTaskDeps, makeMusic, musicTasks } from '../../../pipelines/media/audio/music.ts'
import {
  type MakeSpeechDeps,
  makeSpeech,
  type SpeechTaskDeps,
  speechTasks,
} from '../../../pipelines/media/audio/speech.ts'
import { extractTranscript, type TranscriptDeps } from '../../../pipelines/media/audio/transcripts.ts'
import {
  cloneVoice,
  deleteVoice,
  type ListVoicesDeps,
  listVoices,
  showVoice,
} from '../../../pipelines/media/audio/voices.ts'
import type { DeleteRecordDeps } from '../../../pipelines/media/delete-record.ts'
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import { type RoutedPath, routed } from './routed.ts'

export type AudioRouteDeps = MakeSpeechDeps &
  MusicTaskDeps &
  SpeechTaskDeps &
  ListVoicesDeps &
  DeleteRecordDeps &
  DeleteFilesDeps &
  TranscriptDeps

export function audioRoutes(deps: AudioRouteDeps): readonly RoutedPath[] {
  const music = musicTasks(deps)
  const speech = speechTasks(deps)
  return [
    routed('/v1/music/generations', { POST: makeMusic(deps), GET: music.list }),
    routed('/v1/music/generations/{id}', { GET: music.show, DELETE: music.cancel }),
    routed('/v1/music/generations/{id}/files', { DELETE: deleteFiles(deps, 'music') }),
    routed('/v1/audio/speech', { POST: makeSpeech(deps), GET: speech.list }),
    routed('/v1/audio/speech/{id}', { GET: speech.show, DELETE: speech.cancel }),
    routed('/v1/audio/speech/{id}/files', { DELETE: deleteFiles(deps, 'speech') }),
    routed('/v1/audio/voices', { POST: cloneVoice(deps), GET: listVoices(deps) }),
    routed('/v1/audio/voices/{id}', { GET: showVoice(deps), DELETE: deleteVoice(deps) }),
    routed('/v1/transcripts/extract', { POST: extractTranscript(deps) }),
  ]
}
