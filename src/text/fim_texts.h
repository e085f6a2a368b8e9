// The texts that tokens for filling in have, by model family.
#pragma once

#include <array>
#include <string_view>

namespace kvasir::text {

inline constexpr auto kFimPrefixTexts =
    std::to_array<std::string_view>({"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>",
                                     "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"});
inline constexpr auto kFimSuffixTexts =
    std::to_array<std::string_view>({"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>",
                                     "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"});
inline constexpr auto kFimMiddleTexts =
    std::to_array<std::string_view>({"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>",
                                     "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"});
inline constexpr auto kFimPaddingTexts =
    std::to_array<std::string_view>({"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"});
inline constexpr auto kFimRepositoryTexts =
    std::to_array<std::string_view>({"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"});
inline constexpr auto kFimSeparatorTexts = std::to_array<std::string_view>({"<|file_sep|>"});

}  // namespace kvasir::text
