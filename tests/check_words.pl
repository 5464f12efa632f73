#!/usr/bin/perl
# check_words.pl [PATH...] - lines of tracked files (of these folders or files) that use a word of tests/words.txt.
#
# Plan scripts that have been published, and texts made of them, are data and keep their words. A word counts where no letter stands on either side, so parts of identifiers between underscores count, too. A
# line that says "deprecated" may name what it deprecates. Exit status 1 if there is such a line.
use strict;
use warnings;

my (@words, %instead, %allowed, $found);
open my $list, '<', 'tests/words.txt' or die "tests/words.txt: $!\n";
while (<$list>) {
	chomp;
	next if /^#/ || !/\S/;
	my ($word, $use, $paths) = split /\t/;
	push @words, $word;
	$instead{$word} = $use;
	$allowed{$word} = $paths;
}
my $any = join '|', map { "(?:$_)" } @words;
my @paths = @ARGV ? @ARGV : qw(src ui lua examples hw docs README.md Makefile tests);
open my $files, '-|', 'git', 'ls-files', '--', @paths or die "git: $!\n";
while (my $path = <$files>) {
	chomp $path;
	next if $path =~ m{^tests/words\.txt$|^tests/lua/old_scripts\.txt$|\.svg$|\.png$|\.jsonl$|^docs/changes\.md$};
	open my $file, '<', $path or next;
	while (my $line = <$file>) {
		next if $line !~ /(?<![A-Za-z])(?:$any)(?![A-Za-z])/i || $line =~ /deprecated/i;
		while ($line =~ /(?<![A-Za-z])($any)(?![A-Za-z])/gi) {
			my $seen = $1;
			my ($word) = grep { $seen =~ /^(?:$_)$/i } @words;
			next if $allowed{$word} && $path =~ /$allowed{$word}/;
			print "$path:$.: '$seen': say $instead{$word}\n";
			$found++;
		}
	}
	close $file;
}
print $found ? "$found retired words\n" : "no retired words\n";
exit($found ? 1 : 0);
